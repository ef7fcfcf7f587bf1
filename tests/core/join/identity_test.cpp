// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "join/identity.hpp"

using namespace regatta;
using nlohmann::json;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("equal programs have no differences; others give a table of who has what") {
  const json mine{{"regatta", "0.1.0"}, {"git", "c589ef7"}, {"program SHA-256", "12ab"}};
  json other = mine;
  CHECK(differences_of_hosts({"n0", "n1"}, {mine, other}).empty());
  other["git"] = "770f022";
  other["program SHA-256"] = nullptr;
  const std::string table = differences_of_hosts({"n0", "n1", "n2"}, {mine, other, mine});
  for (const char* part : {"n0", "n1", "n2", "git", "c589ef7", "770f022", "program SHA-256", "12ab", "null"})
    CHECK(has(table, part));
  CHECK(!has(table, "0.1.0")); // it is the same on all
}

TEST_CASE("unequal machines are named with the property, and little differences of memory are none") {
  const json first{{"cpu", "EPYC 7763"}, {"cores", 64}, {"memory_bytes", 512e9}, {"kernel", "Linux 6.1"}};
  json second = first;
  second["memory_bytes"] = 511e9;
  CHECK(unequal_machines({"n0", "n1"}, {first, second}).empty());
  second["cores"] = 32;
  second["memory_bytes"] = 256e9;
  const auto warnings = unequal_machines({"n0", "n1", "n2"}, {first, first, second});
  REQUIRE(warnings.size() == 2);
  CHECK(has(warnings[0], "cores is 64 on n0, and 32 on n2"));
  CHECK(has(warnings[1], "memory_bytes"));
}

TEST_CASE("clocks that differ are named, and little differences of a measured clock are none") {
  const json first{{"cpu", "EPYC 7763"}, {"clock_hz", 2449996000}};
  json second = first;
  second["clock_hz"] = 2450104000;
  CHECK(unequal_machines({"n0", "n1"}, {first, second}).empty());
  second["clock_hz"] = 2000000000;
  const auto warnings = unequal_machines({"n0", "n1"}, {first, second});
  REQUIRE(warnings.size() == 1);
  CHECK(has(warnings[0], "clock_hz is 2449996000 on n0, and 2000000000 on n1"));
}

TEST_CASE("libraries that only some hosts load are named") {
  const json first{"libc.so.6", "libdnnl.so.2.6"}, other{"libc.so.6", "libdnnl.so.3.5"},
      more{"libc.so.6", "libdnnl.so.2.6", "libm.so.6"};
  CHECK(unequal_libraries({"n0", "n1"}, {first, first}).empty());
  CHECK(unequal_libraries({"n0", "n1", "n2"}, {first, first, other}) ==
        "the hosts are not equal machines: plugins load libdnnl.so.2.6 on n0, and libdnnl.so.3.5 on n2");
  CHECK(has(unequal_libraries({"n0", "n1"}, {first, more}), "nothing more on n0, and libm.so.6 on n1"));
}

// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

using namespace regatta::test;

TEST_CASE("doctor says what the machine has, and what the build lacks") {
  const temporary_folder s;
  const outcome o = program(s, "doctor --json");
  CAPTURE(o.err);
  REQUIRE(o.code == 0);
  const json d = parsed(o.out);
  CHECK(d.at("machine").at("cores").get<int>() >= 1);
  CHECK(d.at("limits").contains("open_files"));
  CHECK(d.at("plugins").at("found").at("transports").get<int>() >= 1);
  const json& independence = d.at("machine").at("core_independence");
  CHECK(independence.is_null() == (d.at("machine").at("cores") == 1));
  if (!independence.is_null())
    for (const char* of : {"fma", "copy"}) {
      CHECK(independence.at(of).get<double>() > 0);
      CHECK(independence.at(of).get<double>() <= 1.3);
    }
  CHECK(d.at("plugins").at("unusable").empty());
  CHECK(d.at("machine").at("interfaces").size() >= 1);
  // A plugin is there, or the build says why not.
  const outcome list = program(s, "list transports --json");
  const json transports = parsed(list.out).at("transports");
  bool nccl = false;
  for (const json& t : transports) nccl |= t.at("id") == "nccl";
  const std::string left_out = text_of(d.at("plugins").at("left_out"));
  CHECK(nccl == (left_out.find("nccl") == std::string::npos));
}

TEST_CASE("doctor prints the same for people, and fails where a plugin cannot be used") {
  const temporary_folder s;
  const outcome o = program(s, "doctor");
  CHECK(o.code == 0);
  for (const char* part : {"machine\n", "limits\n", "plugins\n", "devices\n", "network\n"})
    CHECK(o.out.find(part) != std::string::npos);
  std::ofstream(s.path / "broken.so") << "no library";
  const outcome broken = program(s, "doctor --plugin-path .");
  CHECK(broken.code == 3);
  CHECK(broken.out.find("broken.so") != std::string::npos);
}

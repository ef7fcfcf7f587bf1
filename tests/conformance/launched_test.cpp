// SPDX-License-Identifier: Apache-2.0
//
// `regatta check` of a transport whose ranks are processes that a launcher has started: each of them is one rank of all
// worlds, process 0 says how it went.
#include "broken.hpp"

using namespace regatta::test;

namespace {

// As mpiexec would start so many processes.
outcome launched(const scratch& s, int processes, const std::string& arguments) {
  const auto place = [&](int rank) {
    return "TMPDIR=" + s.path.string() + " PMI_RANK=" + std::to_string(rank) +
           " PMI_SIZE=" + std::to_string(processes) + " PMI_JOBID=check." + std::to_string(getpid());
  };
  const std::string all = "check --plugin-path " BROKEN_PLUGINS " " + arguments;
  std::string others;
  for (int rank = 1; rank < processes; ++rank)
    others += place(rank) + " " REGATTA_PROGRAM " " + all + " >out" + std::to_string(rank) + " & ";
  return program(s, all, "{ " + others + "} && " + place(0));
}

names named(const json& document, const std::string& status) {
  names found;
  for (const json& subject : document.at("subjects"))
    for (const json& t : subject.at("tests"))
      if (t.at("status") == status) found.insert(t.at("name"));
  return found;
}

const std::string tests = "--json --only sizes --only fifo --only traffic --only wake --only close --only killed-peer";

} // namespace

TEST_CASE("a sound transport passes what processes of a launcher can be asked, and says of the rest why not") {
  const scratch s;
  const outcome o = launched(s, 4, "transport/launched " + tests);
  INFO(o.err);
  REQUIRE(o.code == 0);
  const json found = parsed(o.out);
  CHECK(named(found, "passed") == names{"sizes", "fifo", "traffic", "wake", "close"});
  CHECK(named(found, "skipped") == names{"killed-peer"});
  for (int rank = 1; rank < 4; ++rank) CHECK(read(s.path / ("out" + std::to_string(rank))).empty());
  for (const auto& entry : fs::directory_iterator(s.path)) // where they met is gone
    CHECK(!entry.path().filename().string().starts_with("regatta"));
}

TEST_CASE("a broken one fails by the right name") {
  const scratch s;
  const outcome o = launched(s, 3, "transport/launched_and_short " + tests);
  INFO(o.err);
  CHECK(o.code == 1);
  const json found = parsed(o.out);
  CHECK(named(found, "failed") == names{"sizes", "fifo", "traffic", "close"});
  CHECK(named(found, "passed") == names{"wake"});
}

TEST_CASE("fewer processes than a world takes: skipped, with how many it takes") {
  const scratch s;
  const outcome o = launched(s, 2, "transport/launched --only fifo --only wake");
  INFO(o.err);
  CHECK(o.code == 0);
  CHECK(o.out.find("it takes 3 processes, and 2 were started") != std::string::npos);
  CHECK(o.out.find("pass  wake") != std::string::npos);
}

TEST_CASE("without a launcher, the command to use") {
  const scratch s;
  const outcome o = program(s, "check transport/launched --only fifo --plugin-path " BROKEN_PLUGINS);
  CHECK(o.code == 77); // nothing was tested
  CHECK(o.out.find("mpiexec -n 4 regatta check transport/launched") != std::string::npos);
}

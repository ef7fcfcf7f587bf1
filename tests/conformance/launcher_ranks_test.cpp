// SPDX-License-Identifier: Apache-2.0
//
// `regatta check` of a transport whose ranks are processes of a launcher. Each process has the same rank in all tests;
// process 0 prints the results.
#include "broken.hpp"

using namespace regatta::test;

namespace {

// Starts the processes as mpiexec does.
outcome run_under_launcher(const temporary_folder& s, int processes, const std::string& arguments) {
  const auto environment = [&](int rank) {
    return "TMPDIR=" + s.path.string() + " PMI_RANK=" + std::to_string(rank) +
           " PMI_SIZE=" + std::to_string(processes) + " PMI_JOBID=check." + std::to_string(getpid());
  };
  const std::string all = "check --plugin-path " BROKEN_PLUGINS " " + arguments;
  std::string others;
  for (int rank = 1; rank < processes; ++rank)
    others += environment(rank) + " " REGATTA_PROGRAM " " + all + " >out" + std::to_string(rank) + " & ";
  return program(s, all, "{ " + others + "} && " + environment(0));
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

TEST_CASE("a correct transport passes the tests that can run under a launcher; the others are skipped") {
  const temporary_folder s;
  const outcome o = run_under_launcher(s, 4, "transport/launched " + tests);
  INFO(o.err);
  REQUIRE(o.code == 0);
  const json found = parsed(o.out);
  CHECK(named(found, "passed") == names{"sizes", "fifo", "traffic", "wake", "close"});
  CHECK(named(found, "skipped") == names{"killed-peer"});
  for (int rank = 1; rank < 4; ++rank) CHECK(read(s.path / ("out" + std::to_string(rank))).empty());
  for (const auto& entry : fs::directory_iterator(s.path)) // the file of their shared memory is removed
    CHECK(!entry.path().filename().string().starts_with("regatta"));
}

TEST_CASE("a broken transport fails the tests that its defect concerns") {
  const temporary_folder s;
  const outcome o = run_under_launcher(s, 3, "transport/launched_and_short " + tests);
  INFO(o.err);
  CHECK(o.code == 1);
  const json found = parsed(o.out);
  CHECK(named(found, "failed") == names{"sizes", "fifo", "traffic", "close"});
  CHECK(named(found, "passed") == names{"wake"});
}

TEST_CASE("a test that needs more processes than were started is skipped, with their number") {
  const temporary_folder s;
  const outcome o = run_under_launcher(s, 2, "transport/launched --only fifo --only wake");
  INFO(o.err);
  CHECK(o.code == 0);
  CHECK(o.out.find("it needs 3 processes, and the launcher started 2") != std::string::npos);
  CHECK(o.out.find("pass  wake") != std::string::npos);
}

TEST_CASE("without a launcher, the tests are skipped with the command to use") {
  const temporary_folder s;
  const outcome o = program(s, "check transport/launched --only fifo --plugin-path " BROKEN_PLUGINS);
  CHECK(o.code == 77); // nothing was tested
  CHECK(o.out.find("mpiexec -n 4 regatta check transport/launched") != std::string::npos);
}

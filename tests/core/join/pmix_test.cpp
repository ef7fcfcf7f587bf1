// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <string>

#include <doctest/doctest.h>

#include "temporary_folder.hpp"

using regatta::test::temporary_folder;

namespace {

const std::string cleared = "env -u PMIX_RANK -u PMIX_NAMESPACE -u PMIX_SERVER_URI2 -u PMIX_SERVER_URI4 ";

int exit_code_of(const std::string& command, const temporary_folder& s) {
  const int status = std::system((command + " >" + s.path.string() + "/output 2>&1").c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

} // namespace

TEST_CASE("the processes of mpirun learn rank, size and process 0's text by PMIx, and can use MPI beside it") {
  const temporary_folder s;
  const int code =
      exit_code_of(REGATTA_MPIRUN " --allow-run-as-root --oversubscribe -n 3 " PMIX_PROCESS " " + s.path.string(), s);
  INFO(s.read("output"));
  REQUIRE(code == 0);
  const std::string seen = s.read("0");
#ifdef REGATTA_TEST_MPI
  CHECK(seen.starts_with("agree; 3; from 0; 3; pid "));
#else
  CHECK(seen.starts_with("agree; 3; from 0; -1; pid "));
#endif
  CHECK(s.read("1") == seen);
  CHECK(s.read("2") == seen);
}

TEST_CASE("without a launcher, PMIx is refused instead of making a job of one process") {
  const temporary_folder s;
  CHECK(exit_code_of("timeout 20 " + cleared + PMIX_PROCESS " " + s.path.string(), s) == 1);
  CHECK(s.read("output").find("PMIx, which the launcher serves") != std::string::npos);
}

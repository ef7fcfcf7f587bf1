// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace regatta {

struct check_options {
  std::string target; // FILE.so or KIND/ID
  // Folders; NAME=VALUE for the component; patterns of test names (fnmatch), empty: all tests.
  std::vector<std::string> plugin_path, set, only;
  std::vector<std::string> report; // files to write; their endings say the formats
  std::string command;             // as typed, for reports
  std::uint64_t seed = 1;
  std::string reference, write_reference; // folders; empty: none
  bool in_process = false;                // runs the tests in this process, not in one for each
  bool list = false;                      // only prints the tests
  bool quick = false;                     // leaves out tests that take gigabytes or minutes
  bool json = false;                      // prints the document in place of lines
  // Options of a process that another `regatta check` started for one test (conformance::run_in_child).
  std::string one, component;    // name of the test, empty: not such a process; KIND/ID, empty: the file itself
  std::vector<std::string> with; // other plugin files
};

// Runs `regatta check`, prints the results and writes the reports. Returns 1 if a test failed; else 77 if all tests of
// a component's behaviour were skipped; else 0. If a launcher started several processes of this command, for a
// transport that needs one, only the first of them prints and writes; the others return 0. Throws failure: before any
// test, usage if options are wrong or --only names no test, and plugin if the file or component is missing or cannot be
// used; at any time, run if a report cannot be written and interrupted if a signal came while one was written. With
// write_reference it throws failure (run or skipped) if no reference is written. [main]
int check_verb(const check_options& options);

} // namespace regatta

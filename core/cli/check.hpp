// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace regatta {

struct check_options {
  std::string target; // FILE.so or KIND/ID
  std::vector<std::string> plugin_path, set, only;
  std::uint64_t seed = 1;
  std::string reference, write_reference; // folders; empty: none
  bool in_process = false, list = false, quick = false, json = false;
  // Options of a process that runs one test.
  std::string one, component;
  std::vector<std::string> with;
};

// Runs `regatta check`. Returns the exit code; throws failure if there is nothing to test. [main]
int check_verb(const check_options& options);

} // namespace regatta

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
  // Of the processes that run one test each.
  std::string one, component;
  std::vector<std::string> with;
};

// `regatta check`: returns the exit code; throws failure where there is nothing to test. [main]
int check_verb(const check_options& options);

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// The control groups that this process is in.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace regatta {

struct control_group {
  std::filesystem::path folder;
  bool v2;
};

// The groups of a controller ("cpu", "memory") that hold this process: its own first, then that one's parents up to the
// mount point; of v1 and v2 where both are mounted. `root` is "/" but in tests.
std::vector<control_group> control_groups(const std::string& controller, const std::filesystem::path& root = "/");

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// Finds the control groups that this process is in.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace regatta {

struct control_group {
  std::filesystem::path folder;
  bool v2;
};

// Returns the groups of a controller ("cpu", "memory") that hold this process: its own first, then the parents up to
// the mount point. Returns those of v1 and v2 if both are mounted. `root` is "/" except in tests.
std::vector<control_group> control_groups(const std::string& controller, const std::filesystem::path& root = "/");

} // namespace regatta

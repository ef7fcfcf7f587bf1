// SPDX-License-Identifier: Apache-2.0
//
// Finds the control groups that this process is in.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace regatta {

struct control_group {
  std::filesystem::path folder; // of its files, such as memory.max
  bool v2;                      // the file names are those of cgroup v2
};

// Returns the groups of a controller ("cpu", "memory") that hold this process: its own first, then the parents up to
// the mount point; empty if none is mounted. If v1 and v2 are both mounted, returns those of one version after those of
// the other. The v2 group is listed even if the controller is not enabled in it: its files are then missing. `root` is
// "/" except in tests.
std::vector<control_group> control_groups(const std::string& controller, const std::filesystem::path& root = "/");

} // namespace regatta

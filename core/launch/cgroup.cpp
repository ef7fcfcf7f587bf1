// SPDX-License-Identifier: Apache-2.0
#include "launch/cgroup.hpp"

#include <fstream>
#include <optional>
#include <sstream>

namespace regatta {
namespace {

namespace fs = std::filesystem;

bool has_word(const std::string& list, const std::string& word) {
  return ("," + list + ",").find("," + word + ",") != std::string::npos;
}

struct cgroup_mount {
  fs::path point;
  fs::path of; // the group at the mount point: not "/" in a container without its own namespace
};

// Parses /proc/self/mountinfo: "31 23 0:28 / /sys/fs/cgroup rw - cgroup cgroup rw,cpu".
std::optional<cgroup_mount> find_mount(const fs::path& root, const std::string& controller, bool v2) {
  std::ifstream file(root / "proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const auto dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream head(line.substr(0, dash)), tail(line.substr(dash + 3));
    std::string id, parent, device, of, point, type, source, options;
    head >> id >> parent >> device >> of >> point;
    tail >> type >> source >> options;
    if (v2 ? type == "cgroup2" : type == "cgroup" && has_word(options, controller)) return cgroup_mount{point, of};
  }
  return {};
}

// Appends the group and its parents up to the mount point.
void append(const fs::path& root, const std::string& controller, const std::string& group, bool v2,
            std::vector<control_group>& all) {
  const auto mount = find_mount(root, controller, v2);
  if (!mount) return;
  auto inside = fs::path(group).lexically_relative(mount->of);
  if (inside.empty() || *inside.begin() == "..")
    inside = "."; // in another cgroup namespace: only the group at the mount point is visible
  for (auto at = inside.lexically_normal();; at = at.parent_path()) {
    all.push_back({root / mount->point.relative_path() / at, v2});
    if (at.empty() || at == ".") return;
  }
}

} // namespace

std::vector<control_group> control_groups(const std::string& controller, const fs::path& root) {
  std::vector<control_group> all;
  std::ifstream file(root / "proc/self/cgroup"); // "0::/user.slice" or "4:cpu,cpuacct:/docker/1f"
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const auto controllers = line.substr(first + 1, second - first - 1);
    const bool v2 = controllers.empty();
    if (v2 || has_word(controllers, controller)) append(root, controller, line.substr(second + 1), v2, all);
  }
  return all;
}

} // namespace regatta

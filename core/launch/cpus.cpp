// SPDX-License-Identifier: Apache-2.0
#include "launch/cpus.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <sched.h>

namespace regatta {

namespace {

namespace fs = std::filesystem;

constexpr double no_limit = std::numeric_limits<double>::infinity();

// "200000 100000" or "max 100000".
double limit_v2(const fs::path& group) {
  std::ifstream file(group / "cpu.max");
  double quota = 0, period = 0;
  return file >> quota >> period && period > 0 ? quota / period : no_limit;
}

double limit_v1(const fs::path& group) {
  std::ifstream quota_file(group / "cpu.cfs_quota_us"), period_file(group / "cpu.cfs_period_us");
  double quota = 0, period = 0;
  return quota_file >> quota && period_file >> period && quota > 0 && period > 0 ? quota / period : no_limit;
}

bool has_word(const std::string& list, const std::string& word) {
  return ("," + list + ",").find("," + word + ",") != std::string::npos;
}

struct cgroup_mount {
  fs::path point;
  fs::path of; // which group is mounted there: not "/" in containers without a namespace of their own
};

// From /proc/self/mountinfo: "31 23 0:28 / /sys/fs/cgroup rw - cgroup cgroup rw,cpu".
std::optional<cgroup_mount> find_mount(const fs::path& root, bool v2) {
  std::ifstream file(root / "proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const auto dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream head(line.substr(0, dash)), tail(line.substr(dash + 3));
    std::string id, parent, device, of, point, type, source, options;
    head >> id >> parent >> device >> of >> point;
    tail >> type >> source >> options;
    if (v2 ? type == "cgroup2" : type == "cgroup" && has_word(options, "cpu")) return cgroup_mount{point, of};
  }
  return {};
}

// The least limit from the group up to the mount point.
double least_limit(const fs::path& root, const std::string& group, bool v2) {
  const auto mount = find_mount(root, v2);
  if (!mount) return no_limit;
  auto inside = fs::path(group).lexically_relative(mount->of);
  if (inside.empty() || *inside.begin() == "..")
    inside = "."; // seen from another namespace: only the mount point is ours
  double least = no_limit;
  for (auto at = inside.lexically_normal();; at = at.parent_path()) {
    const auto folder = root / mount->point.relative_path() / at;
    least = std::min(least, v2 ? limit_v2(folder) : limit_v1(folder));
    if (at.empty() || at == ".") return least;
  }
}

// How many threads of the same core come before this one: 0 for the first.
std::size_t place_in_core(int cpu) {
  std::ifstream file(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu));
  std::size_t place = 0;
  for (std::string part; std::getline(file, part, ',');) {
    int first = 0, last = 0;
    char dash = 0;
    std::istringstream range(part);
    if (!(range >> first)) return 0;
    if (!(range >> dash >> last)) last = first;
    place += static_cast<std::size_t>(std::clamp(cpu - first, 0, last - first + 1));
  }
  return place;
}

} // namespace

std::vector<int> available_cpus() {
  std::vector<int> out;
  // The kernel refuses a mask shorter than its own, whose length it does not tell.
  for (int count = 1024; count <= 1 << 20; count *= 2) {
    cpu_set_t* set = CPU_ALLOC(count);
    const auto bytes = CPU_ALLOC_SIZE(count);
    const bool fits = ::sched_getaffinity(0, bytes, set) == 0;
    for (int cpu = 0; fits && cpu < count; ++cpu)
      if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, set)) out.push_back(cpu);
    CPU_FREE(set);
    if (fits) break;
  }
  return out;
}

double cgroup_cpu_limit(const fs::path& root) {
  double least = no_limit;
  std::ifstream file(root / "proc/self/cgroup"); // "0::/user.slice" or "4:cpu,cpuacct:/docker/1f"
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const auto controllers = line.substr(first + 1, second - first - 1);
    const bool v2 = controllers.empty();
    if (v2 || has_word(controllers, "cpu")) least = std::min(least, least_limit(root, line.substr(second + 1), v2));
  }
  return least;
}

cpu_assignment assign_cpus(std::size_t ranks, std::size_t threads, bool pin) {
  const auto cpus = available_cpus();
  cpu_assignment out;
  // A quota of 1.5 CPUs gives two busy threads less than a core each.
  const double limit = std::min(static_cast<double>(cpus.size()), std::max(1.0, std::floor(cgroup_cpu_limit() + 0.01)));
  out.available = static_cast<std::size_t>(limit);
  out.oversubscribed = ranks * threads > out.available;
  out.cpus.resize(ranks);
  if (!pin || threads == 0 || ranks * threads > cpus.size()) return out;

  std::vector<std::pair<std::size_t, int>> order;
  for (const int cpu : cpus) order.emplace_back(place_in_core(cpu), cpu);
  std::sort(order.begin(), order.end());
  for (std::size_t i = 0; i < ranks * threads; ++i) out.cpus[i / threads].push_back(order[i].second);
  return out;
}

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#include "launch/cpus.hpp"

#include "base/cpu_mask.hpp"
#include "launch/cgroup.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace regatta {

namespace {

namespace fs = std::filesystem;

constexpr double no_limit = std::numeric_limits<double>::infinity();

// Reads "200000 100000" or "max 100000".
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

// Returns the index of this CPU among the hardware threads of its core.
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

double cgroup_cpu_limit(const fs::path& root) {
  double least = no_limit;
  for (const control_group& g : control_groups("cpu", root))
    least = std::min(least, g.v2 ? limit_v2(g.folder) : limit_v1(g.folder));
  return least;
}

cpu_supply this_hosts_cpus() {
  std::vector<std::pair<std::size_t, int>> order;
  for (const int cpu : available_cpus()) order.emplace_back(place_in_core(cpu), cpu);
  std::sort(order.begin(), order.end());
  cpu_supply supply{{}, cgroup_cpu_limit()};
  for (const auto& [place, cpu] : order) supply.cpus.push_back(cpu);
  return supply;
}

cpu_assignment assign_cpus(const cpu_supply& supply, std::size_t ranks, std::size_t threads, bool pin) {
  const std::vector<int>& cpus = supply.cpus;
  cpu_assignment out;
  // With a quota of 1.5 CPUs, two busy threads get less than one core each: round down.
  const double limit = std::min(static_cast<double>(cpus.size()), std::max(1.0, std::floor(supply.limit + 0.01)));
  out.available = static_cast<std::size_t>(limit);
  out.oversubscribed = ranks * threads > out.available;
  out.cpus.resize(ranks);
  if (!pin || threads == 0 || ranks * threads > cpus.size()) return out;
  for (std::size_t i = 0; i < ranks * threads; ++i) out.cpus[i / threads].push_back(cpus[i]);
  return out;
}

} // namespace regatta

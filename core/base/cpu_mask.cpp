// SPDX-License-Identifier: Apache-2.0
#include "base/cpu_mask.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <system_error>

namespace regatta {

std::vector<int> available_cpus() {
  std::vector<int> out;
  // The kernel rejects a mask shorter than its own, and does not tell the length.
  for (std::size_t count = 1; count <= 1024; count *= 2) {
    std::vector<cpu_set_t> sets(count);
    const std::size_t bytes = count * sizeof(cpu_set_t);
    if (::sched_getaffinity(0, bytes, sets.data()) != 0) continue;
    for (std::size_t cpu = 0; cpu < count * CPU_SETSIZE; ++cpu)
      if (CPU_ISSET_S(cpu, bytes, sets.data())) out.push_back(static_cast<int>(cpu));
    break;
  }
  return out;
}

std::optional<int> numa_node_of(const std::vector<int>& cpus, const std::filesystem::path& nodes) {
  std::optional<int> node;
  for (const int cpu : cpus) {
    int mine = -1;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(nodes, ignored))
      if (const std::string name = entry.path().filename();
          name.starts_with("node") && std::filesystem::exists(entry.path() / ("cpu" + std::to_string(cpu)), ignored))
        std::from_chars(name.data() + 4, name.data() + name.size(), mine);
    if (mine < 0 || (node && *node != mine)) return std::nullopt;
    node = mine;
  }
  return node;
}

cpu_mask::cpu_mask(const std::vector<int>& cpus) {
  const int highest = cpus.empty() ? -1 : std::ranges::max(cpus);
  if (highest < 0) return;
  sets_.resize(static_cast<std::size_t>(highest) / CPU_SETSIZE + 1);
  for (const int cpu : cpus)
    if (cpu >= 0) CPU_SET_S(static_cast<std::size_t>(cpu), bytes(), sets_.data());
}

} // namespace regatta

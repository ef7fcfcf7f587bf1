// SPDX-License-Identifier: Apache-2.0
#include "base/cpu_mask.hpp"

#include <algorithm>

namespace regatta {

std::vector<int> available_cpus() {
  std::vector<int> out;
  // The kernel rejects a mask shorter than its own, and does not tell the length.
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

cpu_mask::cpu_mask(const std::vector<int>& cpus) {
  int highest = -1;
  for (const int cpu : cpus) highest = std::max(highest, cpu);
  if (highest < 0) return;
  set = CPU_ALLOC(highest + 1);
  bytes = CPU_ALLOC_SIZE(highest + 1);
  CPU_ZERO_S(bytes, set);
  for (const int cpu : cpus)
    if (cpu >= 0) CPU_SET_S(static_cast<std::size_t>(cpu), bytes, set);
}

cpu_mask::~cpu_mask() {
  if (set != nullptr) CPU_FREE(set);
}

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// Affinity masks of any length: cpu_set_t holds 1024 CPUs, and the kernel refuses a mask that is shorter than its own.
#pragma once

#include <cstddef>
#include <vector>

#include <sched.h>

namespace regatta {

// Returns the CPUs in this thread's affinity mask, ascending; empty if the mask cannot be read.
std::vector<int> available_cpus();

// A mask of CPUs for sched_setaffinity(), as long as the highest of them needs. `set` is null without CPUs.
struct cpu_mask {
  explicit cpu_mask(const std::vector<int>& cpus);
  ~cpu_mask();
  cpu_mask(const cpu_mask&) = delete;
  cpu_mask& operator=(const cpu_mask&) = delete;

  cpu_set_t* set = nullptr;
  std::size_t bytes = 0;
};

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// Which CPUs this process really has: what the scheduler allows it, and how much of that its control groups grant.
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

namespace regatta {

// The CPUs in this thread's affinity mask, ascending.
std::vector<int> available_cpus();

// CPUs' worth of time that the control groups of this process grant (cpu.max of v2, cpu.cfs_quota_us of v1; the least
// on the way to the root); infinity where none limits. `root` is "/" but in tests.
double cgroup_cpu_limit(const std::filesystem::path& root = "/");

struct cpu_assignment {
  std::vector<std::vector<int>> cpus; // by rank, `threads` each; all empty: nobody is pinned
  std::size_t available = 0;          // whole CPUs, of the mask and the control group the smaller
  bool oversubscribed = false;        // ranks times threads are more
};

// Gives each rank CPUs of its own, distinct cores before the second threads of any core. Ranks that would have to share
// a CPU are not pinned: the scheduler shares more fairly than a fixed assignment.
cpu_assignment assign_cpus(std::size_t ranks, std::size_t threads, bool pin);

} // namespace regatta

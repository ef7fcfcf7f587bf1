// SPDX-License-Identifier: Apache-2.0
//
// The CPUs that this process may use: its affinity mask, and the quota of its control groups.
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

#include <sched.h>

namespace regatta {

// Returns the CPUs in this thread's affinity mask, ascending.
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

// Returns the number of CPUs whose time the control groups of this process grant (v2: cpu.max, v1: cpu.cfs_quota_us);
// the smallest up to the root, infinity without a limit. `root` is "/" except in tests.
double cgroup_cpu_limit(const std::filesystem::path& root = "/");

struct cpu_assignment {
  std::vector<std::vector<int>> cpus; // by rank, `threads` each; all empty: ranks are not pinned
  std::size_t available = 0;          // whole CPUs: the smaller of affinity mask and quota
  bool oversubscribed = false;        // ranks times threads exceed `available`
};

// Gives each rank its own CPUs; first one hardware thread of each core, then the second ones. If ranks would have to
// share a CPU, none is pinned: the scheduler shares more fairly than a fixed assignment.
cpu_assignment assign_cpus(std::size_t ranks, std::size_t threads, bool pin);

} // namespace regatta

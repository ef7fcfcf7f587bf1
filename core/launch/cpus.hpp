// SPDX-License-Identifier: Apache-2.0
//
// Assigns CPUs to ranks: those of the affinity mask, within the quota of the control groups.
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

namespace regatta {

// Returns the CPU quota of this process, in CPUs, such as 1.5: the smallest (v2: cpu.max, v1: cpu.cfs_quota_us) of its
// control groups and their parents; infinity without a limit. `root` is "/" except in tests.
double cgroup_cpu_limit(const std::filesystem::path& root = "/");

// The CPUs that ranks may use on a host.
struct cpu_supply {
  std::vector<int> cpus; // of the affinity mask: first one hardware thread of each core, then the second ones
  double limit = 0;      // quota of the control groups, in CPUs; infinity: none
};

// Returns the CPUs of this thread's affinity mask, and the quota of this process.
cpu_supply this_hosts_cpus();

struct cpu_assignment {
  std::vector<std::vector<int>> cpus; // by rank, `threads` each; all empty: ranks are not pinned
  std::size_t available = 0;          // smaller of affinity mask and quota, in whole CPUs (1.5 counts as 1); at least 1
  bool oversubscribed = false;        // ranks times threads exceed `available`
};

// Assigns each of a host's ranks `threads` CPUs of its own, in the order of `supply`. Assigns none if `pin` is false or
// there are fewer than ranks * threads CPUs: the scheduler shares CPUs more fairly than a fixed assignment. A quota
// below ranks * threads does not prevent pinning. Fills `available` and `oversubscribed` in any case.
cpu_assignment assign_cpus(const cpu_supply& supply, std::size_t ranks, std::size_t threads, bool pin);

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// Affinity masks of any length: cpu_set_t holds 1024 CPUs, and sched_getaffinity() fails if the mask to write into is
// shorter than the kernel's. sched_setaffinity() takes shorter ones: CPUs beyond their end are excluded.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <vector>

#include <sched.h>

namespace regatta {

// Returns the CPUs in the calling thread's affinity mask, ascending; empty if the mask cannot be read.
std::vector<int> available_cpus();

// Returns the NUMA node of all these CPUs; std::nullopt if they are on several nodes, if the node of one is unknown, or
// without CPUs. `nodes` is /sys/devices/system/node except in tests.
std::optional<int> numa_node_of(const std::vector<int>& cpus,
                                const std::filesystem::path& nodes = "/sys/devices/system/node");

// A mask of CPUs for sched_setaffinity(), as long as the highest of them needs.
class cpu_mask {
public:
  explicit cpu_mask(const std::vector<int>& cpus);
  const cpu_set_t* set() const { return sets_.empty() ? nullptr : sets_.data(); } // null without CPUs
  std::size_t bytes() const { return sets_.size() * sizeof(cpu_set_t); }

private:
  std::vector<cpu_set_t> sets_;
};

} // namespace regatta

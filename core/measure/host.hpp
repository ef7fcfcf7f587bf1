// SPDX-License-Identifier: Apache-2.0
//
// The machine that a result was measured on. Everything is read from it; what cannot be read is null.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace regatta {

// This machine: name, cpu with its vector extensions, cores (that this process may run on), memory_bytes (that it may
// use: the control group's limit where it is smaller), governor, gpus, interfaces, kernel, libraries. `cgroup_cpus` is
// the caller's cgroup_cpu_limit(); infinity becomes null.
nlohmann::json describe_host(double cgroup_cpus);

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// Describes the machine that a result was measured on. Values that cannot be read are null, lists empty.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace regatta {

// Throws failure (usage) if the environment variable REGATTA_ISA is set to something that is no name of an instruction
// set.
void check_isa_variable();

// Returns an object for "hosts" of the context: this machine's name, cpu with its vector extensions, clock_hz, isa
// (instruction set, as train.isa names it: that of the CPU, or REGATTA_ISA if that is lower), cores (that this
// process may run on), memory_bytes (that it may use: the cgroup's limit if that is smaller), cgroup_cpus, governor,
// gpus (NVIDIA's models), interfaces (a list of name, bits_per_second and mtu in bytes), kernel, libraries (by name).
// `cgroup_cpus` is the caller's cgroup_cpu_limit(); infinity becomes null.
nlohmann::json describe_host(double cgroup_cpus);

} // namespace regatta

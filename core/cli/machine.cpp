// SPDX-License-Identifier: Apache-2.0
#include "cli/machine.hpp"

#include "launch/cpus.hpp"
#include "machine/core_independence.hpp"
#include "machine/host.hpp"

#include <nlohmann/json.hpp>

namespace regatta {

nlohmann::json describe_machine() {
  nlohmann::json machine = describe_host(cgroup_cpu_limit());
  machine["core_independence"] = nullptr;
  if (const auto ranks = assign_cpus(this_hosts_cpus(), 2, 1, true).cpus; !ranks[0].empty())
    machine["core_independence"] = to_json(measure_core_independence(ranks[0][0], ranks[1][0]));
  return machine;
}

nlohmann::json machine_now() {
  const auto ranks = assign_cpus(this_hosts_cpus(), 2, 1, true).cpus;
  return ranks[0].empty() ? nlohmann::json() : to_json(measure_rates_at_once(ranks[0][0], ranks[1][0]));
}

} // namespace regatta

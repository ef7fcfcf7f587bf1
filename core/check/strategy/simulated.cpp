// SPDX-License-Identifier: Apache-2.0
#include "check/strategy/simulated.hpp"

#include "check/harness/progress.hpp"
#include "cluster/plan.hpp"
#include "registry/plugin_host.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace regatta::conformance {

rg_plan plan_for(const subject& s, std::uint32_t workers, std::uint32_t servers, const optimizer_config& with) {
  plugin_host host;
  const parameter_values values(*s.tested, s.parameters);
  return plan_of(s.tested->strategy, values.data(), cluster_layout::make(workers, servers, false), with, host,
                 s.tested->id);
}

void set_shapes(simulation_setup& x, const std::vector<std::vector<std::int64_t>>& all) {
  x.shapes = all;
  x.tensors.clear();
  for (const auto& shape : all) {
    x.tensors.push_back(1);
    for (const std::int64_t d : shape) x.tensors.back() *= d;
  }
}

bool needs_servers(const subject& s) {
  return plan_for(s, 2, 1).flags & RG_PLAN_SERVERS;
}

simulation_setup setup_for(const subject& s, std::uint32_t workers, std::uint32_t servers) {
  simulation_setup x;
  x.strategy = s.tested->id;
  x.parameters = s.parameters;
  x.workers = workers;
  x.servers = needs_servers(s) ? servers : 0;
  set_shapes(x, {{10, 4}, {7}, {13, 10}, {5, 3, 3, 3}, {16}, {3, 5, 1, 1}});
  x.steps = whole_periods(plan_for(s, workers, servers), x.steps);
  return x;
}

std::string title(const simulation_setup& x) {
  return fmt::format("{} workers, {} servers{}, {}, {}{}{}: ", x.workers, x.servers, x.colocate ? " (co-located)" : "",
                     x.network.eager ? "eager" : "rendezvous", x.network.adds ? "adds" : "copies only",
                     x.optimizer.clip_norm > 0 ? ", clipped" : "", x.straggler_ns ? ", a straggler" : "");
}

simulation_result run_simulation(const subject& s, const simulation_setup& x) {
  try {
    simulation_result r = simulate(*s.plugins, x);
    report_progress();
    require(r.left_over == 0, fmt::format("{} operations are still pending at the end of the run", r.left_over));
    return r;
  } catch (const std::exception& e) {
    throw failed(title(x) + e.what());
  }
}

void for_all(const subject& s, const std::function<void(simulation_setup&)>& f) {
  const std::uint32_t most_servers = needs_servers(s) ? 3 : 1;
  for (std::uint32_t workers = 1; workers <= 7; ++workers)
    for (std::uint32_t servers = 1; servers <= most_servers; ++servers)
      for (const bool eager : {true, false})
        for (const bool adds : {true, false}) {
          simulation_setup x = setup_for(s, workers, servers);
          x.colocate = x.servers && (workers + servers) % 2;
          x.network.eager = eager;
          x.network.adds = adds;
          x.straggler_ns = workers % 3 ? 0 : 50'000;
          f(x);
        }
}

std::uint64_t steps_until_steady(const rg_plan& p) {
  constexpr std::uint64_t most = 20'000;
  if (p.steady_from > most)
    remark(fmt::format("it is steady after {} steps; the test simulates {} before it looks", p.steady_from, most));
  return std::min(p.steady_from, most);
}

bool agree(float value, double expected) {
  return std::abs(value - expected) <= 1e-5 * (1 + std::abs(expected));
}

} // namespace regatta::conformance

// SPDX-License-Identifier: Apache-2.0
#include "check/strategy/simulated.hpp"

#include "base/failure.hpp"
#include "check/harness/progress.hpp"
#include "cluster/layout.hpp"
#include "cluster/plan.hpp"
#include "registry/plugin_host.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace regatta::conformance {

rg_plan plan_for(const subject& s, std::uint32_t workers, std::uint32_t servers, const optimizer_config& with,
                 std::uint32_t hosts) {
  plugin_host host;
  const parameter_values values(*s.tested, s.parameters);
  return plan_of(s.tested->strategy, values.data(), cluster_layout::make(workers, servers, false, hosts), with, host,
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

std::string why_refused(const subject& s, std::uint32_t workers, std::uint32_t servers, const optimizer_config& with,
                        std::uint32_t hosts) {
  try {
    plan_for(s, workers, servers, with, hosts);
  } catch (const failure& e) {
    if (e.code() != exit_code::usage) throw;
    return e.what();
  }
  return "";
}

std::string why_not_clipped(const subject& s) {
  optimizer_config clipping;
  clipping.clip_norm = 0.5;
  return why_refused(s, workers_near(s, 2), 1, clipping);
}

std::uint32_t workers_near(const subject& s, std::uint32_t wanted) {
  constexpr std::uint32_t most = 8;
  for (std::uint32_t distance = 0; distance < most; ++distance) {
    if (wanted + distance <= most && why_refused(s, wanted + distance, 1).empty()) return wanted + distance;
    if (distance && wanted > distance && why_refused(s, wanted - distance, 1).empty()) return wanted - distance;
  }
  plan_for(s, wanted, 1); // throws
  return wanted;
}

rg_plan some_plan(const subject& s) {
  return plan_for(s, workers_near(s, 2), 1);
}

bool needs_servers(const subject& s) {
  return some_plan(s).flags & RG_PLAN_SERVERS;
}

bool refused_sizes::refuses(const subject& s, std::uint32_t workers, std::uint32_t servers) {
  const std::string why = why_refused(s, workers, servers);
  if (why.empty()) return false;
  if (workers_.empty()) why_ = why;
  workers_.insert(workers);
  return true;
}

void refused_sizes::tell() const {
  if (!workers_.empty())
    remark(
        fmt::format("clusters with {} workers are left out: plan() rejects them: {}", fmt::join(workers_, ", "), why_));
}

std::vector<std::uint32_t> accepted_sizes(const subject& s, const std::vector<std::uint32_t>& workers) {
  refused_sizes refused;
  std::vector<std::uint32_t> accepted;
  for (const std::uint32_t n : workers)
    if (!refused.refuses(s, n, 2)) accepted.push_back(n);
  refused.tell();
  if (accepted.empty()) accepted.push_back(workers_near(s, workers.at(0)));
  return accepted;
}

simulation_setup setup_for(const subject& s, std::uint32_t workers, std::uint32_t servers) {
  simulation_setup x;
  x.strategy = s.tested->id;
  x.parameters = s.parameters;
  x.workers = workers;
  x.servers = needs_servers(s) ? servers : 0;
  set_shapes(x, {{10, 4}, {7}, {13, 10}, {5, 4, 3, 3}, {16}, {3, 5, 1, 1}, {12, 9}});
  x.late_tensor = 0;
  x.flat_tensor = 2;
  const rg_plan p = plan_for(s, workers, servers);
  x.steps = whole_periods(p, x.steps);
  x.network.collectives = p.flags & RG_PLAN_COLLECTIVES;
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

simulation_result run_unfinished(const subject& s, const simulation_setup& x) {
  try {
    simulation_result r = simulate(*s.plugins, x);
    report_progress();
    return r;
  } catch (const std::exception& e) {
    throw failed(title(x) + e.what());
  }
}

void need_messages(const subject& s, const simulation_setup& x, const simulation_result& r) {
  if (std::any_of(r.counted.begin(), r.counted.end(), [](const auto& c) { return c.messages_sent != 0; })) return;
  const parameter_values values(*s.tested, s.parameters);
  const cluster_layout layout = cluster_layout::make(x.workers, x.servers, x.colocate);
  const rg_cluster cluster = layout.view(UINT32_MAX);
  for (std::uint32_t a = 0; a < layout.size(); ++a)
    for (std::uint32_t b = 0; b < a; ++b)
      require(
          !s.tested->strategy.talks(values.data(), &cluster, a, b),
          fmt::format("{}talks() says that ranks {} and {} exchange messages, but no rank sends any", title(x), b, a));
  throw skipped("its workers send nothing; each trains alone");
}

void for_all(const subject& s, const std::function<void(simulation_setup&)>& f) {
  const std::uint32_t most_servers = needs_servers(s) ? 3 : 1;
  refused_sizes refused;
  for (std::uint32_t workers = 1; workers <= 7; ++workers)
    for (std::uint32_t servers = 1; servers <= most_servers; ++servers) {
      if (refused.refuses(s, workers, servers)) continue;
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
  refused.tell();
}

std::uint64_t steps_until_steady(const rg_plan& p) {
  constexpr std::uint64_t most = 20'000;
  if (p.steady_from > most)
    remark(fmt::format("it is steady after {} steps; the test simulates {} before it looks", p.steady_from, most));
  return std::min(p.steady_from, most);
}

void expect_same_end(const simulation_setup& x, const simulation_result& r) {
  for (std::size_t w = 1; w < r.weights.size(); ++w)
    for (std::size_t i = 0; i < r.weights[w].size(); ++i)
      require(r.weights[w][i] == r.weights[0][i], fmt::format("{}weight {} is {} on worker 0 and {} on worker {}",
                                                              title(x), i, r.weights[0][i], r.weights[w][i], w));
}

void expect_identical(const simulation_setup& x, const simulation_result& r) {
  for (std::size_t w = 1; w < r.checksums.size(); ++w)
    for (std::size_t step = 0; step < r.checksums[w].size(); ++step)
      require(r.checksums[w][step] == r.checksums[0][step],
              fmt::format("{}step {} begins with other weights on worker {} than on worker 0", title(x), step, w));
  expect_same_end(x, r);
}

bool agree(float value, double expected) {
  return std::abs(value - expected) <= 1e-5 * (1 + std::abs(expected));
}

} // namespace regatta::conformance

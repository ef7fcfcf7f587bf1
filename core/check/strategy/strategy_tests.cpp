// SPDX-License-Identifier: Apache-2.0
//
// Tests of strategies in virtual time: all ranks in one process, a network as strict as the interface allows, and a
// model whose gradient depends on the weights that it reads.
#include "check/harness/progress.hpp"
#include "check/harness/suite.hpp"

#include "base/failure.hpp"
#include "registry/plugin_host.hpp"
#include "simulation/simulation.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>
#include <sys/resource.h>

namespace regatta::conformance {
namespace {

rg_plan plan_for(const subject& s, std::uint32_t workers, std::uint32_t servers, const optimizer_config& with = {}) {
  plugin_host host;
  const parameter_values values(*s.what, s.parameters);
  return plan_of(s.what->strategy, values.data(), cluster_layout::make(workers, servers, false), with, host,
                 s.what->id);
}

using shapes = std::vector<std::vector<std::int64_t>>;

// Vectors, matrices and weights of a convolution, most of them no multiple of a cache line.
const shapes usual_shapes = {{10, 4}, {7}, {13, 10}, {5, 3, 3, 3}, {16}, {3, 5, 1, 1}};

void set_shapes(simulation_setup& x, const shapes& all) {
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

// Returns true if every step of all workers uses the sum of their gradients, so that one worker's serial run is the
// reference.
bool equals_serial_run(const rg_plan& p) {
  return (p.flags & RG_PLAN_SYNCHRONOUS) && !(p.flags & RG_PLAN_MOMENTUM) && p.period <= 1 && p.steady_from == 0;
}

simulation_setup setup_for(const subject& s, std::uint32_t workers, std::uint32_t servers) {
  simulation_setup x;
  x.strategy = s.what->id;
  x.parameters = s.parameters;
  x.workers = workers;
  x.servers = needs_servers(s) ? servers : 0;
  set_shapes(x, usual_shapes);
  const rg_plan p = plan_for(s, workers, servers);
  x.steps = (x.steps + p.period - 1) / std::max<std::uint64_t>(p.period, 1) * std::max<std::uint64_t>(p.period, 1);
  return x;
}

std::string title(const simulation_setup& x) {
  return fmt::format("{} workers, {} servers{}, {}, {}{}{}: ", x.workers, x.servers, x.colocate ? " (co-located)" : "",
                     x.network.eager ? "eager" : "rendezvous", x.network.adds ? "adds" : "copies only",
                     x.optimizer.clip_norm > 0 ? ", clipped" : "", x.straggler_ns ? ", a straggler" : "");
}

simulation_result run(const subject& s, const simulation_setup& x) {
  try {
    simulation_result r = simulate(*s.plugins, x);
    pulse();
    require(r.left_over == 0, fmt::format("{} operations never end", r.left_over));
    return r;
  } catch (const std::exception& e) {
    throw failed(title(x) + e.what());
  }
}

// Calls `f` with a setup for each small cluster and each kind of network.
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

void expect_identical(const simulation_setup& x, const simulation_result& r) {
  for (std::size_t w = 1; w < r.weights.size(); ++w)
    for (std::size_t i = 0; i < r.weights[w].size(); ++i)
      require(r.weights[w][i] == r.weights[0][i], fmt::format("{}element {} is {} on worker 0 and {} on worker {}",
                                                              title(x), i, r.weights[0][i], r.weights[w][i], w));
}

// Returns true if the values are equal up to the rounding of fp32 in a few steps with gradients of about 1.
bool agree(float value, double expected) {
  return std::abs(value - expected) <= 1e-5 * (1 + std::abs(expected));
}

void expect_serial(const simulation_setup& x, const simulation_result& r) {
  const auto expected = train_serially(x);
  for (std::size_t i = 0; i < r.weights.at(0).size(); ++i)
    require(agree(r.weights[0][i], expected[i]),
            fmt::format("{}element {} is {}, of one worker {}", title(x), i, r.weights[0][i], expected[i]));
}
// Throws failed unless `held`, the rows that `who` has changed, are those of a serial run. `who` is for the message.
void expect_serial_rows(const simulation_setup& x, const std::map<std::uint64_t, std::vector<float>>& held,
                        const std::string& who) {
  std::set<std::uint64_t> touched;
  for (std::uint32_t w = 0; w < x.workers; ++w)
    for (std::uint64_t step = 0; step < x.steps; ++step)
      for (const std::uint64_t row : rows_touched(x, w, step)) touched.insert(row);
  require(held.size() == touched.size(),
          fmt::format("{}{} changed {} rows of a table, one worker {}", title(x), who, held.size(), touched.size()));
  const auto expected = train_serially(x);
  for (const auto& [row, values] : held)
    for (std::size_t e = 0; e < values.size(); ++e) {
      const double one = expected[arena_elements(x) + row * values.size() + e];
      require(agree(values[e], one),
              fmt::format("{}{}: element {} of row {} is {}, of one worker {}", title(x), who, e, row, values[e], one));
    }
}

void need_synchronous(const subject& s, bool exact) {
  const rg_plan p = plan_for(s, 2, 1);
  if (!(p.flags & RG_PLAN_SYNCHRONOUS)) throw skipped("it is not synchronous (RG_PLAN_SYNCHRONOUS)");
  if (exact && !equals_serial_run(p))
    throw skipped("it does the momentum itself, or repeats only after several steps, or becomes steady later");
}

// ---------------------------------------------------------------------------------------------------------- tests ---

void drains(const subject& s) {
  for_all(s, [&](simulation_setup& x) { run(s, x); });
}

void replicas(const subject& s) {
  need_synchronous(s, false);
  for_all(s, [&](simulation_setup& x) { expect_identical(x, run(s, x)); });
}

void serial(const subject& s) {
  need_synchronous(s, true);
  for_all(s, [&](simulation_setup& x) { expect_serial(x, run(s, x)); });
}

void clipped(const subject& s) {
  need_synchronous(s, true);
  optimizer_config clipping;
  clipping.clip_norm = 0.5;
  try {
    plan_for(s, 2, 1, clipping);
  } catch (const failure& e) {
    if (e.code() != exit_code::usage) throw;
    throw skipped(fmt::format("its plan() refuses clipping: {}", e.what()));
  }
  for_all(s, [&](simulation_setup& x) {
    x.optimizer.clip_norm = 0.5;
    const simulation_result r = run(s, x);
    expect_identical(x, r);
    expect_serial(x, r);
  });
}

// Weights of more than one bucket of the usual size, in tensors whose ends are not the ends of buckets.
void many_buckets(const subject& s) {
  need_synchronous(s, true);
  for (const bool eager : {true, false}) {
    simulation_setup x = setup_for(s, 2, 2);
    x.steps = 1;
    set_shapes(x, {{1000, 700}, {33}, {166667, 3}, {5}});
    x.network.eager = eager;
    const simulation_result r = run(s, x);
    expect_identical(x, r);
    expect_serial(x, r);
  }
}

// A sparse table: the rows that a worker touches differ between workers and steps; in some steps it touches none.
void sparse_rows(const subject& s) {
  const rg_plan p = plan_for(s, 2, 1);
  if (!(p.flags & RG_PLAN_ROWS)) throw skipped("it exchanges no rows of sparse tables (RG_PLAN_ROWS)");
  for_all(s, [&](simulation_setup& x) {
    if (x.workers > 4) return;
    x.table_rows = 200;
    const simulation_result r = run(s, x);
    if (!equals_serial_run(p)) return;
    expect_serial(x, r);
    // Either every worker holds the whole table, or the servers together do.
    std::map<std::uint64_t, std::vector<float>> together;
    for (const auto& part : r.server_rows) together.insert(part.begin(), part.end());
    if (!together.empty()) return expect_serial_rows(x, together, "the servers");
    for (std::uint32_t w = 0; w < x.workers; ++w) expect_serial_rows(x, r.worker_rows[w], fmt::format("worker {}", w));
  });
}

// Returns the distance of the workers' weights from the weights of a serial run, relative to the distance that the
// weights of the serial run have moved.
double apart_after(const simulation_setup& x, const simulation_result& r) {
  const auto expected = train_serially(x);
  simulation_setup still = x;
  still.optimizer.lr = 0;
  const auto start = train_serially(still);
  double apart = 0, moved = 0;
  for (const auto& weights : r.weights)
    for (std::size_t i = 0; i < expected.size(); ++i) {
      apart += std::pow(weights[i] - expected[i], 2);
      moved += std::pow(start[i] - expected[i], 2);
    }
  return std::sqrt(apart / moved);
}

// A strategy whose steps differ from those of one worker must still train: its weights must come near those of a serial
// run. Without servers, the gradients of each asynchronous worker lead to a different point, so that no worker gets
// there alone. The run needs many steps: a compressing strategy that sends one of a tensor's 100 elements in each step
// updates a weight once in a hundred steps, and workers that average weights move 1/n as far in a step.
void trains(const subject& s) {
  const rg_plan p = plan_for(s, 3, 2);
  if (equals_serial_run(p)) throw skipped("test `serial` says more");
  simulation_setup x = setup_for(s, 3, 2);
  // Small enough that a gradient which is applied a hundred steps late still has the right sign (with 1, dgc of every
  // tensor diverges); large enough against gradients that only oscillate (with 0.02, geo_ps ends 0.9 apart).
  x.pull = 0.1;
  if (!(p.flags & RG_PLAN_SYNCHRONOUS) && !needs_servers(s)) x.pull_apart = 2;
  const std::uint64_t period = std::max<std::uint64_t>(p.period, 1);
  const auto whole_periods = [&](std::uint64_t steps) { return (steps + period - 1) / period * period; };
  if (p.steady_from > 20'000) throw skipped(fmt::format("it is steady only after {} steps", p.steady_from));
  double apart = 0;
  for (const std::uint64_t steps : {50, 500, 5000}) {
    x.steps = whole_periods(p.steady_from + std::max(steps, 2 * period));
    const simulation_result r = run(s, x);
    if (std::all_of(r.counted.begin(), r.counted.end(), [](const auto& c) { return c.messages_sent == 0; }))
      throw skipped("its workers send nothing: each trains alone");
    apart = apart_after(x, r);
    if (apart <= 0.5) return;
  }
  throw failed(fmt::format("{}after {} steps the weights are {:.3g} of the way that one worker's have gone from those",
                           title(x), x.steps, apart));
}

void deterministic(const subject& s) {
  for (const bool eager : {true, false}) {
    simulation_setup x = setup_for(s, 4, 2);
    x.network.eager = eager;
    x.straggler_ns = 20'000;
    const simulation_result a = run(s, x), b = run(s, x);
    require(a.virtual_ns == b.virtual_ns,
            fmt::format("{}it takes {} ns and {} ns", title(x), a.virtual_ns, b.virtual_ns));
    require(a.weights == b.weights, title(x) + "the weights differ");
  }
}

// A strategy that blocks (in a sleep, a lock, or a wait for a thread) gives up the CPU; virtual time needs no such
// wait.
void never_blocks(const subject& s) {
  simulation_setup x = setup_for(s, 3, 2);
  x.steps = std::max<std::uint64_t>(x.steps, 40);
  run(s, x); // the first run reads files and touches memory
  rusage before{}, after{};
  getrusage(RUSAGE_THREAD, &before);
  run(s, x);
  getrusage(RUSAGE_THREAD, &after);
  const long waits = after.ru_nvcsw - before.ru_nvcsw;
  require(waits < static_cast<long>(x.steps) / 2, // a page fault that reads from disk may wait once or twice
          fmt::format("{} steps wait {} times outside of the host", x.steps, waits));
}

void plans(const subject& s) {
  const parameter_values values(*s.what, s.parameters);
  for (std::uint32_t workers = 1; workers <= 7; ++workers)
    for (std::uint32_t servers = 1; servers <= 3; ++servers) {
      const rg_plan a = plan_for(s, workers, servers), b = plan_for(s, workers, servers);
      require(a.flags == b.flags && a.lanes == b.lanes && a.period == b.period && a.steady_from == b.steady_from,
              "plan() says something else the second time");
      require(a.flags == plan_for(s, 2, 1).flags, fmt::format("plan() has other flags with {} workers", workers));
      if (!s.what->strategy.talks) continue;
      const cluster_layout layout = cluster_layout::make(workers, a.flags & RG_PLAN_SERVERS ? servers : 0, false);
      const rg_cluster cluster = layout.view(UINT32_MAX);
      for (std::uint32_t i = 0; i < layout.size(); ++i)
        for (std::uint32_t k = 0; k < i; ++k)
          require(!s.what->strategy.talks(values.data(), &cluster, i, k) ==
                      !s.what->strategy.talks(values.data(), &cluster, k, i),
                  fmt::format("talks({}, {}) and talks({}, {}) differ", i, k, k, i));
    }
}

void ghosts(const subject& s) {
  if (plan_for(s, 2, 1).flags & RG_PLAN_BYTES) throw skipped("it works on bytes (RG_PLAN_BYTES)");
  simulation_setup x = setup_for(s, 5, 2);
  x.ghosts = true;
  run(s, x);
}

// Uses a network on which a message shorter than its receive is an error.
void exact_sizes(const subject& s) {
  if (plan_for(s, 2, 1).flags & RG_PLAN_SHORT) throw skipped("it says that it sends shorter ones (RG_PLAN_SHORT)");
  for_all(s, [&](simulation_setup& x) {
    x.network.exact = true;
    run(s, x);
  });
}

} // namespace

const std::vector<test>& strategy_tests() {
  static const std::vector<test> all = {
      {"plan", "plan() and talks() are functions of their arguments, and talks() is symmetric", plans},
      {"drain", "1 to 7 workers on 1 to 3 servers come to their end, and nothing is under way then", drains},
      {"replicas", "all workers end with the same weights, to the bit", replicas},
      {"serial", "the weights are those of one worker that has all gradients", serial},
      {"clip", "so they are where updates are deferred for a norm over all gradients", clipped},
      {"buckets", "so they are with more than a bucket of weights", many_buckets},
      {"rows", "rows of sparse tables become what one worker makes of them; asynchronously, every run comes to its end",
       sparse_rows},
      {"trains", "a strategy that is asynchronous, compresses or waits for several steps goes where one worker goes",
       trains},
      {"deterministic", "a run is the same every time, to the bit and to the virtual nanosecond", deterministic},
      {"blocks", "it waits for nothing but the host: no sleep, lock or thread", never_blocks},
      {"ghosts", "it runs on regions without bytes", ghosts},
      {"exact-sizes", "messages are as long as their receives", exact_sizes},
  };
  return all;
}

} // namespace regatta::conformance

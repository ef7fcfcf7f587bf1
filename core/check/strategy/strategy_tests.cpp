// SPDX-License-Identifier: Apache-2.0
//
// Tests of strategies in virtual time: all ranks in one process, a network as strict as the interface allows, and a
// model whose gradient depends on the weights that it reads.
#include "check/strategy/simulated.hpp"

#include "check/harness/allocation_watch.hpp"
#include "check/harness/progress.hpp"
#include "cluster/layout.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <sys/resource.h>

namespace regatta::conformance {
namespace {

void expect_serial(const simulation_setup& x, const simulation_result& r) {
  const auto expected = train_serially(x);
  for (std::size_t i = 0; i < r.weights.at(0).size(); ++i)
    require(agree(r.weights[0][i], expected[i]), fmt::format("{}weight {} is {}; one worker with all gradients gets {}",
                                                             title(x), i, r.weights[0][i], expected[i]));
}
// Throws failed unless `held`, the rows that `who` has changed, are those of a serial run. `who` is for the message.
void expect_serial_rows(const simulation_setup& x, const std::map<std::uint64_t, std::vector<float>>& held,
                        const std::string& who) {
  std::set<std::uint64_t> touched;
  for (std::uint32_t w = 0; w < x.workers; ++w)
    for (std::uint64_t step = 0; step < x.steps; ++step)
      for (const std::uint64_t row : rows_touched(x, w, step)) touched.insert(row);
  require(held.size() == touched.size(),
          fmt::format("{}{} changed {} rows of a table; one worker with all gradients changes {}", title(x), who,
                      held.size(), touched.size()));
  const auto expected = train_serially(x);
  for (const auto& [row, values] : held)
    for (std::size_t e = 0; e < values.size(); ++e) {
      const double one = expected[arena_elements(x) + row * values.size() + e];
      require(agree(values[e], one),
              fmt::format("{}{}: element {} of row {} is {}; one worker with all gradients gets {}", title(x), who, e,
                          row, values[e], one));
    }
}

void need_synchronous(const subject& s, bool exact) {
  const rg_plan p = some_plan(s);
  if (!(p.flags & RG_PLAN_SYNCHRONOUS)) throw skipped("it is not synchronous (RG_PLAN_SYNCHRONOUS)");
  if (exact && lossy(p)) throw skipped("its sums are not exact (RG_PLAN_LOSSY); test `mean` bounds their error");
}

// ---------------------------------------------------------------------------------------------------------- tests ---

void drains(const subject& s) {
  for_all(s, [&](simulation_setup& x) { run_simulation(s, x); });
}

// A strategy that averages weights in every step may be synchronous by its parameters only: no reason to fail it.
void tell_if_synchronous(const subject& s) {
  const std::uint32_t workers = workers_near(s, 3);
  if (workers < 2) return;
  const simulation_result r = run_simulation(s, setup_for(s, workers, 2));
  if (std::ranges::all_of(r.checksums, [&](const auto& c) { return c == r.checksums[0]; }))
    remark("all workers have the same weights in every step; with RG_PLAN_SYNCHRONOUS the stricter tests run");
}

void replicas(const subject& s) {
  if (some_plan(s).flags & RG_PLAN_AGREES) {
    tell_if_synchronous(s);
    return for_all(s, [&](simulation_setup& x) { expect_same_end(x, run_simulation(s, x)); });
  }
  if (!(some_plan(s).flags & RG_PLAN_SYNCHRONOUS)) tell_if_synchronous(s);
  need_synchronous(s, false);
  for_all(s, [&](simulation_setup& x) { expect_identical(x, run_simulation(s, x)); });
}

void serial(const subject& s) {
  need_synchronous(s, true);
  for_all(s, [&](simulation_setup& x) { expect_serial(x, run_simulation(s, x)); });
}

// Fails unless replicas are identical and, if the strategy's sums are exact, equal to those of a serial run.
void expect_same(const subject& s, const simulation_setup& x, const simulation_result& r) {
  expect_identical(x, r);
  if (!lossy(some_plan(s))) expect_serial(x, r);
}

void need_exact_or_lossy(const subject& s) {
  need_synchronous(s, !lossy(some_plan(s)));
}

void clipped(const subject& s) {
  need_exact_or_lossy(s);
  if (const std::string why = why_not_clipped(s); !why.empty())
    throw skipped(fmt::format("its plan() rejects clipping: {}", why));
  for_all(s, [&](simulation_setup& x) {
    x.optimizer.clip_norm = 2;
    expect_same(s, x, run_simulation(s, x));
  });
}

// Returns the strategy with its integer parameter `name` set to `value`, or to the least value that it may have if that
// is more; unchanged if it has no such parameter, if the user has set it, or if plan() rejects the value.
subject with(const subject& s, std::string_view name, std::int64_t value) {
  const auto parameter = std::ranges::find(s.tested->parameters, name, &rg_param::name);
  if (parameter == s.tested->parameters.end() || parameter->type != RG_PARAM_INT ||
      s.parameters.contains(std::string(name)))
    return s;
  subject changed = s;
  changed.parameters[std::string(name)] =
      static_cast<std::int64_t>(std::max(static_cast<double>(value), parameter->min));
  return why_refused(changed, workers_near(s, 2), 1).empty() ? changed : s;
}

// The transport has native collectives, which end on ranks with odd numbers in another order than on the others. All
// members of a group must begin them in the same order nevertheless.
void native_collectives(const subject& s) {
  const subject tested = with(s, "bucket", 64); // many buckets
  const bool synchronous = some_plan(s).flags & RG_PLAN_SYNCHRONOUS;
  bool used = false;
  for_all(tested, [&](simulation_setup& x) {
    x.network.collectives = x.network.staggers = true;
    try {
      const simulation_result r = run_simulation(tested, x);
      for (const auto& c : r.counted) {
        std::uint64_t in_messages = 0;
        for (const auto& [to, sent] : c.sent_to) in_messages += sent.second;
        used |= c.bytes_sent > in_messages;
      }
      if (synchronous) expect_same(tested, x, r);
    } catch (const failed& e) {
      throw failed(std::string(e.what()) + "; here collectives that are under way together end in another order on "
                                           "each rank: do all ranks begin a group's collectives in the same order?");
    }
  });
  if (!used) throw skipped("it uses none of the transport's collectives");
}

// Weights of more than one bucket of the usual size, in tensors whose ends are not the ends of buckets.
void many_buckets(const subject& s) {
  const bool synchronous = some_plan(s).flags & RG_PLAN_SYNCHRONOUS;
  if (synchronous) need_exact_or_lossy(s);
  for (const bool eager : {true, false}) {
    const subject tested = eager ? s : with(s, "lanes", 2); // lanes share no buffer
    const bool two = tested.parameters != s.parameters;
    try {
      if (synchronous) {
        simulation_setup x = setup_for(tested, workers_near(s, 2), 2);
        x.steps = 1;
        x.late_tensor = x.flat_tensor = SIZE_MAX;
        set_shapes(x, {{1000, 700}, {33}, {166667, 3}, {5}});
        x.network.eager = eager;
        expect_same(tested, x, run_simulation(tested, x));
      } else if (eager || two) {
        expect_all_buckets_exchanged(tested);
      }
    } catch (const failed& e) {
      throw failed((two ? "with lanes = 2: " : "") + std::string(e.what()));
    }
  }
}

// A sparse table: the rows that a worker touches differ between workers and steps; in some steps it touches none.
void sparse_rows(const subject& s) {
  const rg_plan p = some_plan(s);
  if (!(p.flags & RG_PLAN_ROWS)) throw skipped("it exchanges no rows of sparse tables (RG_PLAN_ROWS)");
  for_all(s, [&](simulation_setup& x) {
    if (x.workers > 4) return;
    x.table_rows = 200;
    const simulation_result r = run_simulation(s, x);
    if (!equals_serial_run(p)) return;
    expect_serial(x, r);
    // Either every worker holds the whole table, or the servers together do.
    std::map<std::uint64_t, std::vector<float>> together;
    for (const auto& part : r.server_rows) together.insert(part.begin(), part.end());
    if (!together.empty()) return expect_serial_rows(x, together, "the servers");
    for (std::uint32_t w = 0; w < x.workers; ++w) expect_serial_rows(x, r.worker_rows[w], fmt::format("worker {}", w));
  });
}

// Two runs under the same network are equal. In a third one all times are others, and messages arrive in another order:
// the weights of a synchronous strategy depend on neither.
void deterministic(const subject& s) {
  const bool synchronous = some_plan(s).flags & RG_PLAN_SYNCHRONOUS;
  for (const bool eager : {true, false}) {
    simulation_setup x = setup_for(s, workers_near(s, 4), 2);
    x.network.eager = eager;
    x.straggler_ns = 20'000;
    const simulation_result a = run_simulation(s, x), b = run_simulation(s, x);
    require(a.virtual_ns == b.virtual_ns, fmt::format("{}two identical runs take {} ns and {} ns of virtual time",
                                                      title(x), a.virtual_ns, b.virtual_ns));
    require(a.weights == b.weights, title(x) + "two identical runs give different weights");
    if (!synchronous) continue;
    x.network.latency_ns = 7001;
    x.network.uneven = true;
    x.straggler_ns = 33'333;
    require(run_simulation(s, x).weights == a.weights,
            title(x) + "with other latencies and another straggler, the same run gives other weights: those of a "
                       "synchronous strategy depend on neither time (now()) nor the order in which messages arrive");
  }
}

// Stops between two steps, passes weights and saved state to new instances, and compares their weights at the end with
// those of a run that did not stop. The optimizer is SGD, which keeps no state.
void resumes(const subject& s) {
  const rg_plan p = some_plan(s);
  if (!(p.flags & RG_PLAN_RESUMES)) throw skipped("it does not declare RG_PLAN_RESUMES");
  require(!s.tested->strategy.save == !s.tested->strategy.load, "it has only one of save() and load(); it needs both");
  for_all(s, [&](simulation_setup& x) {
    if (!(p.flags & RG_PLAN_MOMENTUM)) {
      x.optimizer.plugin = "sgd";
      x.optimizer.momentum = 0;
    }
    x.steps = whole_periods(plan_for(s, x.workers, std::max(x.servers, 1u)), 7);
    const simulation_result whole = run_simulation(s, x);
    simulated_checkpoint checkpoint;
    simulation_setup before = x, after = x;
    before.steps = 3;
    before.stop_at = &checkpoint;
    after.resume = &checkpoint;
    try {
      simulate(*s.plugins, before); // servers wait for the next step: receives are pending at its end
    } catch (const std::exception& e) {
      throw failed(title(x) + e.what());
    }
    require(run_simulation(s, after).weights == whole.weights,
            title(x) + "a run that goes on from a checkpoint after 3 steps ends with other weights than one without a "
                       "break: save() leaves out something that the strategy keeps, or load() does not restore it");
  });
}

// The last worker is gone between two steps. The others hear of it, and go on; in a synchronous strategy with the same
// weights. No operation is outstanding at that moment: engines of 1.0 cannot end one with a single peer.
void survives(const subject& s) {
  const std::uint32_t workers = workers_near(s, 4);
  const rg_plan p = plan_for(s, workers, 2);
  if (!(p.flags & RG_PLAN_SURVIVES)) throw skipped("it does not declare RG_PLAN_SURVIVES");
  require(s.tested->strategy.left, "it declares RG_PLAN_SURVIVES without left(), which says which rank died");
  if (workers < 2) throw skipped("it accepts one worker only");
  simulation_setup x = setup_for(s, workers, 2);
  x.stays = whole_periods(p, 3);
  x.steps = x.stays + whole_periods(p, 4);
  simulation_result r;
  try {
    r = run_simulation(s, x);
  } catch (const failed& e) {
    throw failed(fmt::format("the last of {} workers is gone after {} steps: {}", workers, x.stays, e.what()));
  }
  for (std::uint32_t w = 0; w + 1 < workers; ++w) {
    require(r.weights[w] != r.weights[workers - 1],
            fmt::format("worker {} has the weights of step {}, when another one was gone", w, x.stays));
    require(!(p.flags & RG_PLAN_SYNCHRONOUS) || r.weights[w] == r.weights[0],
            fmt::format("workers 0 and {} have different weights after another one was gone", w));
  }
}

// A strategy that blocks (in a sleep, a lock, or a wait for a thread) gives up the CPU; virtual time needs no such
// wait.
void never_blocks(const subject& s) {
  simulation_setup x = setup_for(s, workers_near(s, 3), 2);
  x.steps = std::max<std::uint64_t>(x.steps, 40);
  run_simulation(s, x); // the first run reads files and touches memory
  rusage before{}, after{};
  getrusage(RUSAGE_THREAD, &before);
  run_simulation(s, x);
  getrusage(RUSAGE_THREAD, &after);
  const long waits = after.ru_nvcsw - before.ru_nvcsw;
  require(waits < static_cast<long>(x.steps) / 2, // a page fault that reads from disk may wait once or twice
          fmt::format("{} steps block {} times (voluntary context switches); wait only by functions of the host",
                      x.steps, waits));
}

// After a warm-up, steps allocate nothing: frames of coroutines come from a pool (regatta/task.hpp). Two runs that
// differ in the number of steps allocate as many blocks.
void allocations(const subject& s) {
  const std::uint32_t workers = workers_near(s, 3);
  const rg_plan p = plan_for(s, workers, 2);
  const allocation_watch watch({s.tested->file});
  simulation_setup x = setup_for(s, workers, 2);
  const auto blocks_of = [&](std::uint64_t steps) {
    x.steps = whole_periods(p, steps);
    const std::uint64_t before = watch.blocks();
    run_simulation(s, x);
    return watch.blocks() - before;
  };
  const std::uint64_t warm = steps_until_steady(p) + std::max<std::uint64_t>(50, 4 * p.period);
  blocks_of(warm); // the first run also makes what lives as long as the process
  const std::uint64_t few = blocks_of(warm), many = blocks_of(4 * warm);
  require(many == few,
          fmt::format("{}its code allocates {} blocks in {} steps and {} in {}; expected as many, since steps "
                      "allocate nothing after a warm-up",
                      title(x), few, whole_periods(p, warm), many, x.steps));
}

} // namespace

std::vector<test> strategy_tests() {
  std::vector<test> all = {
      {"drain", "runs of 1 to 7 workers and 1 to 3 servers end, and no operation is pending then", drains},
      {"replicas",
       "all workers have bit-identical weights in every step and at the end; with RG_PLAN_AGREES at the end", replicas},
      {"serial", "the weights equal those of one worker that has all gradients", serial},
      {"clip", "the same if updates wait for the norm of all gradients", clipped},
      {"buckets", "the same with weights of more than one bucket; if asynchronous, workers exchange all of them",
       many_buckets},
      {"collectives",
       "on a transport with native collectives, which end in another order on each rank, runs end; if synchronous, "
       "with the weights of one worker that has all gradients, or, if lossy, with identical weights",
       native_collectives},
      {"rows",
       "rows of sparse tables equal those of one worker that has all gradients; if asynchronous, every run ends",
       sparse_rows},
      {"deterministic",
       "two identical runs give bit-identical weights and the same virtual time; if synchronous, a run with other "
       "latencies gives the same weights",
       deterministic},
      {"resumes", "a run that goes on from a checkpoint (RG_PLAN_RESUMES) ends with bit-identical weights", resumes},
      {"survives", "with RG_PLAN_SURVIVES, the others go on after a worker is gone between two steps", survives},
      {"allocations", "its steps allocate nothing after a warm-up", allocations},
      {"blocks", "it does not block in a sleep, a lock or a wait for a thread", never_blocks},
  };
  std::vector<test> trained = training_tests();
  const std::vector<test> averaging = averaging_tests(), declared = declaration_tests();
  trained.insert(trained.end(), averaging.begin(), averaging.end());
  all.insert(std::ranges::find(all, std::string_view("deterministic"), &test::name), trained.begin(), trained.end());
  all.insert(all.end(), declared.begin(), declared.end());
  return all;
}

} // namespace regatta::conformance

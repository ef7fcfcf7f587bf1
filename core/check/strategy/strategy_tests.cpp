// SPDX-License-Identifier: Apache-2.0
//
// Tests of strategies in virtual time: all ranks in one process, a network as strict as the interface allows, and a
// model whose gradient depends on the weights that it reads.
#include "check/strategy/simulated.hpp"

#include "base/failure.hpp"
#include "check/harness/allocation_watch.hpp"
#include "check/harness/progress.hpp"
#include "cluster/layout.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>
#include <sys/resource.h>

namespace regatta::conformance {
namespace {

// Throws failed unless all workers have the same weights at the end.
void expect_same_end(const simulation_setup& x, const simulation_result& r) {
  for (std::size_t w = 1; w < r.weights.size(); ++w)
    for (std::size_t i = 0; i < r.weights[w].size(); ++i)
      require(r.weights[w][i] == r.weights[0][i], fmt::format("{}weight {} is {} on worker 0 and {} on worker {}",
                                                              title(x), i, r.weights[0][i], r.weights[w][i], w));
}

// Throws failed unless all workers had the same weights in every step, and have them at the end.
void expect_identical(const simulation_setup& x, const simulation_result& r) {
  for (std::size_t w = 1; w < r.checksums.size(); ++w)
    for (std::size_t step = 0; step < r.checksums[w].size(); ++step)
      require(r.checksums[w][step] == r.checksums[0][step],
              fmt::format("{}step {} begins with other weights on worker {} than on worker 0", title(x), step, w));
  expect_same_end(x, r);
}

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
  const rg_plan p = plan_for(s, 2, 1);
  if (!(p.flags & RG_PLAN_SYNCHRONOUS)) throw skipped("it is not synchronous (RG_PLAN_SYNCHRONOUS)");
  if (exact && lossy(p)) throw skipped("its sums are not exact (RG_PLAN_LOSSY); test `mean` bounds their error");
}

// ---------------------------------------------------------------------------------------------------------- tests ---

void drains(const subject& s) {
  for_all(s, [&](simulation_setup& x) { run_simulation(s, x); });
}

void replicas(const subject& s) {
  if (plan_for(s, 2, 1).flags & RG_PLAN_AGREES)
    return for_all(s, [&](simulation_setup& x) { expect_same_end(x, run_simulation(s, x)); });
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
  if (!lossy(plan_for(s, 2, 1))) expect_serial(x, r);
}

void need_exact_or_lossy(const subject& s) {
  need_synchronous(s, !lossy(plan_for(s, 2, 1)));
}

// Returns why plan() rejects clipping; empty: it does not.
std::string why_not_clipped(const subject& s) {
  optimizer_config clipping;
  clipping.clip_norm = 0.5;
  try {
    plan_for(s, 2, 1, clipping);
  } catch (const failure& e) {
    if (e.code() != exit_code::usage) throw;
    return e.what();
  }
  return "";
}

void clipped(const subject& s) {
  need_exact_or_lossy(s);
  if (const std::string why = why_not_clipped(s); !why.empty())
    throw skipped(fmt::format("its plan() rejects clipping: {}", why));
  for_all(s, [&](simulation_setup& x) {
    x.optimizer.clip_norm = 0.5;
    expect_same(s, x, run_simulation(s, x));
  });
}

// Weights of more than one bucket of the usual size, in tensors whose ends are not the ends of buckets.
void many_buckets(const subject& s) {
  need_exact_or_lossy(s);
  for (const bool eager : {true, false}) {
    simulation_setup x = setup_for(s, 2, 2);
    x.steps = 1;
    set_shapes(x, {{1000, 700}, {33}, {166667, 3}, {5}});
    x.network.eager = eager;
    expect_same(s, x, run_simulation(s, x));
  }
}

// A sparse table: the rows that a worker touches differ between workers and steps; in some steps it touches none.
void sparse_rows(const subject& s) {
  const rg_plan p = plan_for(s, 2, 1);
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

// Throws skipped if no rank sends a message: each worker trains alone. Throws failed if talks() says otherwise.
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

// Returns the weights after `steps` steps: of a synchronous strategy those of all workers, else the mean of theirs.
std::vector<float> weights_after(const subject& s, simulation_setup x, std::uint64_t steps, const rg_plan& p) {
  if (steps == 0) {
    const std::vector<char> padding = padding_of(x);
    std::vector<float> initial(padding.size());
    for (std::size_t i = 0; i < initial.size(); ++i) initial[i] = padding[i] ? 0 : initial_weight(i);
    return initial;
  }
  x.steps = steps;
  const simulation_result r = run_simulation(s, x);
  need_messages(s, x, r);
  if (p.flags & RG_PLAN_SYNCHRONOUS) {
    expect_identical(x, r);
    return r.weights.at(0);
  }
  std::vector<float> mean(r.weights.at(0).size());
  for (const auto& weights : r.weights)
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += weights[i] / static_cast<float>(x.workers);
  return mean;
}

// How far the mean of the gradients that some steps have applied is from the true one.
struct mean_error {
  double elements;   // root mean square over the elements of the arena, each relative to its own gradient
  double tensor;     // the largest norm of a tensor's error, relative to the norm of its gradient
  std::size_t worst; // that tensor
};

// For the elements of a tensor: the sum of the updates of some steps, and the sum of the workers' gradients.
struct tensor_mean {
  std::vector<double> applied, truth;
};

// `steps` steps moved the weights from `start` to `end`.
std::vector<tensor_mean> means_of(const simulation_setup& x, const std::vector<float>& start,
                                  const std::vector<float>& end, std::uint64_t steps) {
  const std::vector<char> padding = padding_of(x);
  std::vector<tensor_mean> means(x.tensors.size());
  std::size_t i = 0;
  for (std::size_t t = 0; t < means.size(); ++t)
    for (; means[t].truth.size() < static_cast<std::size_t>(x.tensors[t]); ++i) {
      if (padding[i]) continue;
      double truth = 0;
      for (std::uint32_t w = 0; w < x.workers; ++w) truth += constant_gradient(w, x.workers, i);
      means[t].truth.push_back(truth);
      means[t].applied.push_back((static_cast<double>(start[i]) - end[i]) /
                                 (x.optimizer.lr * static_cast<double>(steps)));
    }
  return means;
}

// The mean should be `times` the sum of the workers' gradients.
mean_error error_of(const std::vector<tensor_mean>& means, double times) {
  double squares = 0, elements = 0;
  mean_error e{0, 0, 0};
  for (std::size_t t = 0; t < means.size(); ++t) {
    double wrong = 0, whole = 0;
    for (std::size_t k = 0; k < means[t].truth.size(); ++k) {
      const double truth = times * means[t].truth[k], error = means[t].applied[k] - truth;
      squares += std::pow(error / truth, 2);
      wrong += error * error;
      whole += truth * truth;
      ++elements;
    }
    const double relative = std::sqrt(wrong / whole);
    if (!(relative <= e.tensor)) e = {0, relative, t};
  }
  e.elements = std::sqrt(squares / elements);
  return e;
}

// Returns by which factor the steps move further than the sum of the workers' gradients does, from 1 to `most`.
double scale_of(const std::vector<tensor_mean>& means, double most) {
  double product = 0, square = 0;
  for (const tensor_mean& m : means) {
    product += std::inner_product(m.applied.begin(), m.applied.end(), m.truth.begin(), 0.0);
    square += std::inner_product(m.truth.begin(), m.truth.end(), m.truth.begin(), 0.0);
  }
  return std::clamp(product / square, 1.0, most);
}

// With a constant gradient g, T steps of an exact strategy apply T g. Error feedback applies T g - e, where the
// residual e is bounded whatever T (Karimireddy et al., "Error Feedback Fixes SignSGD", ICML 2019, section 3 and lemma
// 3), so the error of the mean falls as 1 / T; that of an unbiased compressor falls as 1 / sqrt(T). A biased compressor
// that forgets what it does not send repeats its error in every step: the mean never gets better. From T to 16 T the
// error thus falls to 1/16, to 1/4, or not at all; the limit is 1/2. Small T come first, larger ones if an element may
// not have been sent yet. An error of 1 % always passes: rounding to bf16 is 0.4 % of each element. A large error may
// also fall to a half and stay there, because a tensor is left out or its gradient is doubled, which is an error of its
// whole norm: 0.3 of the norm is the limit for each tensor.
//
// Workers that average their weights, or that are asynchronous, apply T g as well if the gradient does not depend on
// the weights. Where a step is not lossy, only rounding and the averages' own order are left: 0.05 of the norm. Servers
// that merge what workers did alone may go up to n times as far in the same direction (geo_ps).
void mean_gradient(const subject& s) {
  const rg_plan p = plan_for(s, 3, 2);
  if (equals_serial_run(p)) throw skipped("test `serial` is stricter for this strategy");
  simulation_setup x = setup_for(s, 3, 2);
  x.constant = true;
  x.optimizer.plugin = "sgd";
  x.optimizer.momentum = 0;
  const std::uint64_t before = whole_periods(p, steps_until_steady(p));
  const std::vector<float> start = weights_after(s, x, before, p);
  const double most_of_tensor = lossy(p) ? 0.3 : 0.05;
  mean_error early{}, late{};
  std::uint64_t steps = 0;
  for (const std::uint64_t some : {50, 500}) {
    steps = whole_periods(p, some);
    early = error_of(means_of(x, start, weights_after(s, x, before + steps, p), steps), 1);
    const auto means = means_of(x, start, weights_after(s, x, before + 16 * steps, p), 16 * steps);
    const bool merged = (p.flags & RG_PLAN_SERVERS) && !(p.flags & RG_PLAN_SYNCHRONOUS);
    late = error_of(means, merged ? scale_of(means, x.workers) : 1);
    if (!lossy(p) && late.tensor <= most_of_tensor) return;
    if (late.elements <= std::max(0.01, early.elements / 2) && late.tensor <= most_of_tensor) break;
  }
  if (lossy(p) &&
      std::max(early.elements, late.elements) < 1e-3) // rounding of fp32 weights over the steps is below this
    remark("its sums are exact here; without RG_PLAN_LOSSY the stricter tests `serial`, `clip` and `buckets` run");
  require(!lossy(p) || late.elements <= std::max(0.01, early.elements / 2),
          fmt::format("{}with a constant gradient, the mean of what {} steps apply differs from it by {:.3g} of each "
                      "element (root mean square), and of {} steps by {:.3g}; expected at most half of that or 0.01: "
                      "a step must send later what it does not send (error feedback), or its errors must average out",
                      title(x), steps, early.elements, 16 * steps, late.elements));
  require(
      late.tensor <= most_of_tensor,
      fmt::format("{}with a constant gradient, the mean of what {} steps apply differs from that of tensor {} ({} "
                  "elements) by {:.3g} of its norm; expected at most {}: does a step leave the tensor out, or weigh "
                  "it wrongly?",
                  title(x), 16 * steps, late.worst, x.tensors[late.worst], late.tensor, most_of_tensor));
}

// How far the workers' weights are from those of a serial run.
struct training_distance {
  double relative = 0;    // to the distance that the weights of the serial run have moved
  std::size_t tensor = 0; // the one with the largest distance
};

// The distances are root mean squares: over the elements of the tensor, and of the serial run over those of all
// tensors, since one tensor may move little.
training_distance distance_after(const simulation_setup& x, const simulation_result& r) {
  const auto expected = train_serially(x);
  simulation_setup still = x;
  still.optimizer.lr = 0;
  const auto start = train_serially(still);
  double moved = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) moved += std::pow(start[i] - expected[i], 2);
  moved /= static_cast<double>(std::accumulate(x.tensors.begin(), x.tensors.end(), std::int64_t{0}));
  training_distance worst;
  std::size_t first = 0;
  for (std::size_t t = 0; t < x.tensors.size(); ++t) {
    double distance = 0;
    const auto count = static_cast<std::size_t>(x.tensors[t]);
    for (const auto& weights : r.weights)
      for (std::size_t i = first; i < first + count; ++i) distance += std::pow(weights[i] - expected[i], 2);
    const double relative = std::sqrt(distance / static_cast<double>(count * r.weights.size()) / moved);
    if (!(relative <= worst.relative)) worst = {relative, t};
    first += (count + 15) / 16 * 16;
  }
  return worst;
}

// A strategy whose steps differ from those of one worker must still train: its weights must come near those of a serial
// run. Without servers, the gradients of each asynchronous worker lead to a different point, so that no worker gets
// there alone, and the run stops before finish(), which may average once more. The run needs many steps: a compressing
// strategy that sends one of a tensor's 100 elements in each step updates a weight once in a hundred steps, and workers
// that average weights move 1/n as far in a step.
void trains(const subject& s) {
  const rg_plan p = plan_for(s, 3, 2);
  if (equals_serial_run(p)) throw skipped("test `serial` is stricter for this strategy");
  simulation_setup x = setup_for(s, 3, 2);
  // Small enough that a gradient which is applied a hundred steps late still has the right sign (with 1, dgc of every
  // tensor diverges); large enough against gradients that only oscillate (with 0.02, geo_ps ends 0.9 apart).
  x.pull = 0.1;
  if (!(p.flags & RG_PLAN_SYNCHRONOUS) && !needs_servers(s)) x.pull_apart = 2;
  const std::uint64_t before = steps_until_steady(p);
  simulated_checkpoint end; // not used
  if (!needs_servers(s)) x.stop_at = &end;
  const auto run = [&] {
    try {
      simulation_result r = simulate(*s.plugins, x); // operations may be under way where it stops before finish()
      report_progress();
      return r;
    } catch (const std::exception& e) {
      throw failed(title(x) + e.what());
    }
  };
  training_distance distance;
  for (const std::uint64_t steps : {50, 500, 5000}) {
    x.steps = whole_periods(p, before + std::max(steps, 2 * p.period));
    const simulation_result r = run();
    need_messages(s, x, r);
    distance = distance_after(x, r);
    if (distance.relative <= 0.5) break;
  }
  const auto expect_near = [&] {
    require(distance.relative <= 0.5,
            fmt::format("{}after {} steps the distance of the weights from those of one worker is {:.3g} of what those "
                        "have moved; expected at most 0.5; most in tensor {} ({} elements)",
                        title(x), x.steps, distance.relative, distance.tensor, x.tensors[distance.tensor]));
  };
  expect_near();
  // Updates that wait for the norm of all gradients, which is below the limit here, lead as far.
  x.optimizer.clip_norm = 1e9;
  if (!why_not_clipped(s).empty()) return;
  distance = distance_after(x, run());
  expect_near();
}

void deterministic(const subject& s) {
  for (const bool eager : {true, false}) {
    simulation_setup x = setup_for(s, 4, 2);
    x.network.eager = eager;
    x.straggler_ns = 20'000;
    const simulation_result a = run_simulation(s, x), b = run_simulation(s, x);
    require(a.virtual_ns == b.virtual_ns, fmt::format("{}two identical runs take {} ns and {} ns of virtual time",
                                                      title(x), a.virtual_ns, b.virtual_ns));
    require(a.weights == b.weights, title(x) + "two identical runs give different weights");
  }
}

// Stops between two steps, passes weights and saved state to new instances, and compares their weights at the end with
// those of a run that did not stop. The optimizer is SGD, which keeps no state.
void resumes(const subject& s) {
  const rg_plan p = plan_for(s, 3, 2);
  if (!(p.flags & RG_PLAN_RESUMES)) throw skipped("it does not declare RG_PLAN_RESUMES");
  require(!s.tested->strategy.save == !s.tested->strategy.load, "it has only one of save() and load(); it needs both");
  for_all(s, [&](simulation_setup& x) {
    if (!(p.flags & RG_PLAN_MOMENTUM)) {
      x.optimizer.plugin = "sgd";
      x.optimizer.momentum = 0;
    }
    x.steps = whole_periods(p, 7);
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
  const rg_plan p = plan_for(s, 4, 2);
  if (!(p.flags & RG_PLAN_SURVIVES)) throw skipped("it does not declare RG_PLAN_SURVIVES");
  require(s.tested->strategy.left, "it declares RG_PLAN_SURVIVES without left(), which says which rank died");
  simulation_setup x = setup_for(s, 4, 2);
  x.stays = whole_periods(p, 3);
  x.steps = x.stays + whole_periods(p, 4);
  simulation_result r;
  try {
    r = run_simulation(s, x);
  } catch (const failed& e) {
    throw failed(fmt::format("the last of 4 workers is gone after {} steps: {}", x.stays, e.what()));
  }
  for (std::uint32_t w = 0; w < 3; ++w) {
    require(r.weights[w] != r.weights[3],
            fmt::format("worker {} has the weights of step {}, when another one was gone", w, x.stays));
    require(!(p.flags & RG_PLAN_SYNCHRONOUS) || r.weights[w] == r.weights[0],
            fmt::format("workers 0 and {} have different weights after another one was gone", w));
  }
}

// A strategy that blocks (in a sleep, a lock, or a wait for a thread) gives up the CPU; virtual time needs no such
// wait.
void never_blocks(const subject& s) {
  simulation_setup x = setup_for(s, 3, 2);
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
  const rg_plan p = plan_for(s, 3, 2);
  const allocation_watch watch({s.tested->file});
  simulation_setup x = setup_for(s, 3, 2);
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
      {"buckets", "the same with weights of more than one bucket", many_buckets},
      {"rows",
       "rows of sparse tables equal those of one worker that has all gradients; if asynchronous, every run ends",
       sparse_rows},
      {"mean", "if its steps are not exact, the mean of the applied gradients approaches the true one", mean_gradient},
      {"trains", "a strategy that is asynchronous, compresses or averages approaches the weights of one worker",
       trains},
      {"deterministic", "two identical runs give bit-identical weights and the same virtual time", deterministic},
      {"resumes", "a run that goes on from a checkpoint (RG_PLAN_RESUMES) ends with bit-identical weights", resumes},
      {"survives", "with RG_PLAN_SURVIVES, the others go on after a worker is gone between two steps", survives},
      {"allocations", "its steps allocate nothing after a warm-up", allocations},
      {"blocks", "it does not block in a sleep, a lock or a wait for a thread", never_blocks},
  };
  const std::vector<test> declared = declaration_tests();
  all.insert(all.end(), declared.begin(), declared.end());
  return all;
}

} // namespace regatta::conformance

// SPDX-License-Identifier: Apache-2.0
//
// Tests of the numbers that strategies train with whose steps differ from those of one worker: lossy, asynchronous, or
// averaging weights. All run with several numbers of workers: a factor or a neighbour may be right for one only.
#include "check/strategy/simulated.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

namespace regatta::conformance {
namespace {

// Three first: the messages of most mistakes name it.
const std::vector<std::uint32_t> trained_sizes = {3, 4, 2, 5};

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

// The steps from `before` on, `steps` of them, moved the weights from `start` to `end`.
std::vector<tensor_mean> means_of(const simulation_setup& x, const std::vector<float>& start,
                                  const std::vector<float>& end, std::uint64_t before, std::uint64_t steps) {
  const std::uint64_t late = std::clamp<std::uint64_t>(late_steps, before, before + steps) - before;
  const double part = static_cast<double>(late) / static_cast<double>(steps); // of the steps, with gradients of step 0
  const std::vector<char> padding = padding_of(x);
  std::vector<tensor_mean> means(x.tensors.size());
  std::size_t i = 0;
  for (std::size_t t = 0; t < means.size(); ++t)
    for (; means[t].truth.size() < static_cast<std::size_t>(x.tensors[t]); ++i) {
      if (padding[i]) continue;
      double truth = 0;
      for (std::uint32_t w = 0; w < x.workers; ++w)
        truth += part * constant_gradient(x, w, 0, i) + (1 - part) * constant_gradient(x, w, late_steps, i);
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

// Returns by which factor the steps move further than the sum of the workers' gradients does.
double factor_of(const std::vector<tensor_mean>& means) {
  double product = 0, square = 0;
  for (const tensor_mean& m : means) {
    product += std::inner_product(m.applied.begin(), m.applied.end(), m.truth.begin(), 0.0);
    square += std::inner_product(m.truth.begin(), m.truth.end(), m.truth.begin(), 0.0);
  }
  return product / square;
}

// Returns a text with the factor by which all gradients are wrong; empty if most of the error is not a common factor,
// or another one after the fewer steps of `early`.
std::string wrong_factor(const std::vector<tensor_mean>& early, const std::vector<tensor_mean>& means,
                         const mean_error& e, std::uint32_t workers) {
  const double factor = factor_of(means);
  if (!(std::abs(factor_of(early) - factor) <= 0.05 * std::abs(factor))) return "";
  if (!(error_of(means, factor).tensor * std::abs(factor) <= 0.2 * e.tensor) || std::abs(factor - 1) < 0.02) return "";
  const auto near = [&](double x) { return std::abs(factor - x) < 0.02 * x; };
  return fmt::format("the steps apply {:.3g} times the sum of the workers' gradients{}", factor,
                     near(workers)         ? ": the number of workers"
                     : near(1.0 / workers) ? ": 1 divided by the number of workers"
                                           : "");
}

// With a constant gradient g, T steps of an exact strategy apply T g. Error feedback applies T g - e, where the
// residual e is bounded for every T (Karimireddy et al., "Error Feedback Fixes SignSGD", ICML 2019, section 3 and lemma
// 3), so the error of the mean falls as 1 / T; that of an unbiased compressor falls as 1 / sqrt(T). A biased compressor
// that forgets what it does not send repeats its error in every step: the mean never gets better. From T to 16 T the
// error thus falls to 1/16, to 1/4, or not at all; the limit is 1/2. Small T come first, larger ones if an element may
// not have been sent yet. An error of 1 % always passes: rounding to bf16 is 0.4 % of each element. A large error may
// also fall to a half and stay there, because a tensor is left out or its gradient is doubled, which is an error of its
// whole norm: 0.3 of the norm is the limit for each tensor. An error that falls to a half may also end at a few
// percent, because a residual decays by 1 % in each step, or each gradient is 4 % too large. One that is above 1 % must
// therefore fall in the last part of a run, too: of the first cluster from 800 to 3200 steps, or from 2000 to 8000. It
// falls to 1/4 or 1/2 there if the strategy is right, and the limit is 3/4.
//
// Workers that average their weights, or that are asynchronous, apply T g as well if the gradient does not depend on
// the weights. Where a step is not lossy, only rounding and the averages' own order are left: 0.05 of the norm. Servers
// that merge what workers did alone may go up to n times as far in the same direction (geo_ps).
//
// Returns the number of steps T after which the cluster passes, tried from `first` on, and whether a cluster behind the
// first one needed long runs.
struct mean_run {
  std::uint64_t steps = 0;
  bool slow = false;
};
mean_run expect_mean(const subject& s, std::uint32_t workers, std::uint64_t first) {
  const rg_plan p = plan_for(s, workers, 2);
  simulation_setup x = setup_for(s, workers, 2);
  x.constant = true;
  x.optimizer.plugin = "sgd";
  x.optimizer.momentum = 0;
  const std::uint64_t before = whole_periods(p, steps_until_steady(p));
  const std::vector<float> start = weights_after(s, x, before, p);
  const double most_of_tensor = lossy(p) ? 0.3 : 0.05;
  const auto means_after = [&](std::uint64_t steps) {
    return means_of(x, start, weights_after(s, x, before + steps, p), before, steps);
  };
  mean_error early{}, late{}, middle{}, last{};
  std::vector<tensor_mean> few, many;
  std::uint64_t steps = 0, between = 0,
                more = 0; // after `more` times as many steps the error is at most `part` of what it was
  double part = 0;
  constexpr double small = 0.01, most_of_middle = 0.75;
  const auto falls = [&] { return late.elements <= std::max(small, part * early.elements); };
  bool falls_further = true;
  // Runs of clusters behind the first one are shorter if that is enough: there the error falls to 1/4 or 1/2.
  struct attempt {
    std::uint64_t steps, more;
    double part;
    bool later_only;
  };
  for (const auto& [some, times, most_left, later_only] :
       {attempt{50, 16, 0.5, false}, {500, 4, 0.75, true}, {500, 16, 0.5, false}}) {
    if (some < first || (later_only && !first)) continue;
    more = times;
    part = most_left;
    steps = whole_periods(p, some);
    few = means_after(steps);
    many = means_after(more * steps);
    early = error_of(few, 1);
    const bool merged = (p.flags & RG_PLAN_SERVERS) && !(p.flags & RG_PLAN_SYNCHRONOUS);
    late = error_of(many, merged ? std::clamp(factor_of(many), 1.0, static_cast<double>(workers)) : 1);
    if (!lossy(p) && late.tensor <= most_of_tensor) return {some, first && some > 50 && more > 4};
    if (falls() && late.tensor <= most_of_tensor) {
      falls_further = true;
      if (!first && lossy(p) && late.elements > small) {
        const bool longer = some == 50; // else a run in between, for runs of 64 T take long
        between = longer ? more * steps : more / 4 * steps;
        many = longer ? means_after(4 * between) : many;
        middle = longer ? late : error_of(means_after(between), 1);
        last = longer ? error_of(many, 1) : late;
        falls_further = last.elements <= std::max(small, most_of_middle * middle.elements);
      }
      if (!falls_further) continue;
      // Rounding of fp32 weights over the steps is below this.
      if (lossy(p) && !first && std::max(early.elements, late.elements) < 1e-3)
        remark("its sums are exact here; without RG_PLAN_LOSSY the stricter tests `serial`, `clip` and `buckets` run");
      return {some, first && some > 50 && more > 4};
    }
  }
  const std::string factor = wrong_factor(few, many, falls_further ? late : last, workers);
  require(falls_further,
          fmt::format("{}with a constant gradient, the mean of what {} steps apply differs from it by {:.3g} of each "
                      "element (root mean square), and of {} steps by {:.3g}; expected at most {} of that or {}: {}",
                      title(x), between, middle.elements, 4 * between, last.elements, most_of_middle, small,
                      !factor.empty() ? factor : "a part of what a step does not send is lost, not sent later"));
  require(!lossy(p) || falls(),
          fmt::format("{}with a constant gradient, the mean of what {} steps apply differs from it by {:.3g} of each "
                      "element (root mean square), and of {} steps by {:.3g}; expected at most {} of that or {}: {}",
                      title(x), steps, early.elements, more * steps, late.elements, part, small,
                      !factor.empty() ? factor
                                      : "a step must send later what it does not send (error feedback), or its errors "
                                        "must average out"));
  throw failed(fmt::format(
      "{}with a constant gradient, the mean of what {} steps apply differs from that of tensor {} ({} elements) by "
      "{:.3g} of its norm; expected at most {}: {}",
      title(x), more * steps, late.worst, x.tensors[late.worst], late.tensor, most_of_tensor,
      !factor.empty() ? factor : "does a step leave the tensor out, or weigh it wrongly?"));
}

void mean_gradient(const subject& s) {
  if (equals_serial_run(some_plan(s))) throw skipped("test `serial` is stricter for this strategy");
  mean_run run;
  for (const std::uint32_t workers : accepted_sizes(s, trained_sizes)) {
    if (run.slow) return remark("its runs take many steps, so that fewer numbers of workers are tested");
    run = expect_mean(s, workers, run.steps);
  }
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
//
// Returns the number of steps that were enough; tries from `first` on.
std::uint64_t expect_trained(const subject& s, std::uint32_t workers, std::uint64_t first) {
  const rg_plan p = plan_for(s, workers, 2);
  simulation_setup x = setup_for(s, workers, 2);
  // Small enough that a gradient which is applied a hundred steps late still has the right sign (with 1, dgc of every
  // tensor diverges); large enough against gradients that only oscillate (with 0.02, geo_ps ends 0.9 apart).
  x.pull = 0.1;
  if (!(p.flags & RG_PLAN_SYNCHRONOUS) && !needs_servers(s)) x.pull_apart = 2;
  const std::uint64_t before = steps_until_steady(p);
  simulated_checkpoint end; // not used
  if (!needs_servers(s)) x.stop_at = &end;
  training_distance distance;
  std::uint64_t enough = 0;
  for (const std::uint64_t steps : {50, 500, 5000}) {
    if (steps < first) continue;
    enough = steps;
    x.steps = whole_periods(p, before + std::max(steps, 2 * p.period));
    const simulation_result r = run_unfinished(s, x);
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
  if (!why_not_clipped(s).empty()) return enough;
  distance = distance_after(x, run_unfinished(s, x));
  expect_near();
  return enough;
}

void trains(const subject& s) {
  if (equals_serial_run(some_plan(s))) throw skipped("test `serial` is stricter for this strategy");
  std::uint64_t steps = 0;
  for (const std::uint32_t workers : accepted_sizes(s, trained_sizes)) steps = expect_trained(s, workers, steps);
}

} // namespace

std::vector<test> training_tests() {
  return {
      {"mean", "if its steps are not exact, the mean of the applied gradients approaches the true one", mean_gradient},
      {"trains", "a strategy that is asynchronous, compresses or averages approaches the weights of one worker",
       trains},
  };
}

} // namespace regatta::conformance

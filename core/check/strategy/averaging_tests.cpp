// SPDX-License-Identifier: Apache-2.0
//
// Tests of workers that average their weights, or hold different ones for another reason.
#include "check/strategy/simulated.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

namespace regatta::conformance {
namespace {

// Returns a run with about so many elements, in tensors whose ends are not the ends of buckets.
simulation_setup setup_of_size(const subject& s, std::uint32_t workers, std::int64_t elements) {
  simulation_setup x = setup_for(s, workers, 2);
  x.late_tensor = x.flat_tensor = SIZE_MAX;
  set_shapes(x, {{elements / 1000, 560}, {33}, {elements / 1000 * 139 + 1, 3}, {5}});
  x.optimizer.plugin = "sgd";
  x.optimizer.momentum = 0;
  return x;
}

// Returns as many elements as take several buckets, or are more than one of 4 MiB: a strategy that cuts them into more
// buckets sends more messages.
std::int64_t elements_of_buckets(const subject& s, std::uint32_t workers, const rg_plan& p) {
  constexpr std::int64_t sizes[] = {1000, 5000, 70'000, 1'250'000};
  std::uint64_t messages_of_one = 0;
  for (const std::int64_t elements : sizes) {
    if (elements == std::end(sizes)[-1]) break;
    simulation_setup x = setup_of_size(s, workers, elements);
    x.steps = p.period;
    std::uint64_t messages = 0;
    for (const auto& c : run_simulation(s, x).counted) messages += c.messages_sent;
    if (elements == sizes[0]) messages_of_one = messages;
    if (messages >= 3 * messages_of_one) return elements;
  }
  return std::end(sizes)[-1];
}

} // namespace

// The targets of the workers are apart, so that weights which are not exchanged drift apart, too. Weights that are
// exchanged stay together, in each part of the arena alike.
void expect_all_buckets_exchanged(const subject& s) {
  constexpr std::uint64_t few_steps = 8, most_steps = 40, blocks = 64;
  const std::uint32_t workers = workers_near(s, 3);
  const rg_plan p = plan_for(s, workers, 2);
  if (whole_periods(p, few_steps) > most_steps)
    throw skipped(fmt::format("its period of {} steps takes too long with large tensors", p.period));
  simulation_setup x = setup_of_size(s, workers, elements_of_buckets(s, workers, p));
  x.pull = 1;
  x.pull_apart = 2;
  x.steps = whole_periods(p, few_steps);
  simulated_checkpoint end; // not used: finish() may exchange what the steps do not
  if (!needs_servers(s)) x.stop_at = &end;
  const simulation_result r = run_unfinished(s, x);
  need_messages(s, x, r);
  std::vector<double> apart; // by block: root mean square of the distance from the mean of the workers
  const std::uint64_t block = r.weights.at(0).size() / blocks;
  for (std::uint64_t first = 0; first + block <= r.weights.at(0).size(); first += block) {
    double squares = 0;
    for (std::uint64_t i = first; i < first + block; ++i) {
      double mean = 0;
      for (const auto& w : r.weights) mean += w[i] / workers;
      for (const auto& w : r.weights) squares += std::pow(w[i] - mean, 2);
    }
    apart.push_back(std::sqrt(squares / static_cast<double>(block * workers)));
  }
  std::vector<double> sorted = apart;
  std::ranges::sort(sorted);
  // Of workers that train alone: steps towards targets with this distance from their mean.
  double targets = 0;
  for (std::uint32_t w = 0; w < workers; ++w)
    targets += std::pow(x.pull_apart * (w - (workers - 1) / 2.0), 2) / workers;
  const double alone = static_cast<double>(x.steps) * x.optimizer.lr * x.pull * std::sqrt(targets);
  const double most = std::max(3 * sorted[sorted.size() / 2], alone / 4);
  for (std::size_t b = 0; b < apart.size(); ++b)
    require(
        apart[b] <= most,
        fmt::format("{}after {} steps the weights of the workers are {:.3g} apart in elements {} to {} of the arena, "
                    "and {:.3g} in half of its parts; expected at most {:.3g}: are all buckets exchanged in each "
                    "step?",
                    title(x), x.steps, apart[b], b * block, (b + 1) * block - 1, sorted[sorted.size() / 2], most));
}

namespace {

// How far some weights are from those at the begin: the root mean square over the elements, and the worst tensor.
struct weights_moved {
  double elements = 0;
  std::size_t tensor = 0;
};

// Of the mean of all workers' weights if `mean`, else of each worker's.
weights_moved moved_after(const subject& s, simulation_setup x, std::uint64_t steps, bool mean) {
  simulated_checkpoint end; // not used: finish() may average once more
  x.stop_at = &end;
  x.steps = steps;
  const simulation_result r = run_unfinished(s, x);
  need_messages(s, x, r);
  weights_moved moved;
  double all = 0, most = 0, elements = 0;
  std::size_t first = 0;
  for (std::size_t t = 0; t < x.tensors.size(); ++t) {
    const auto count = static_cast<std::size_t>(x.tensors[t]);
    double squares = 0;
    for (std::size_t i = first; i < first + count; ++i) {
      double sum = 0, apart = 0;
      for (const auto& w : r.weights) {
        const double moves = static_cast<double>(w[i]) - static_cast<double>(initial_weight(i));
        sum += moves / x.workers;
        apart += moves * moves / x.workers;
      }
      squares += mean ? sum * sum : apart;
    }
    if (!(squares / static_cast<double>(count) <= most)) {
      most = squares / static_cast<double>(count);
      moved.tensor = t;
    }
    all += squares;
    elements += static_cast<double>(count);
    first += (count + 15) / 16 * 16;
  }
  moved.elements = std::sqrt(all / elements);
  return moved;
}

// Workers that average x_i <- sum_j W_ij x_j, where W is doubly stochastic, keep the mean of all weights. If its rows
// do not add up to 1, weights that are equal everywhere change. If its columns do not, the gradients of some workers
// count more than those of others (Lian et al., "Can Decentralized Algorithms Outperform Centralized Algorithms?",
// NeurIPS 2017, assumption 1.2). Here the gradients of all workers cancel out in each step, so that the mean stays at
// its initial value to rounding, also if what is averaged is some steps old. Weights on their way (push-sum) or rounded
// ones (of bf16: 0.4 %) may take it away from there by a part of a step, but not further in 8 times as many steps; with
// other weights it drifts.
void expect_conserved(const subject& s, std::uint32_t workers) {
  const rg_plan p = plan_for(s, workers, 2);
  simulation_setup x = setup_for(s, workers, 2);
  x.optimizer.plugin = "sgd";
  x.optimizer.momentum = 0;
  x.cancelling = true;
  const std::uint64_t before = whole_periods(p, steps_until_steady(p)),
                      some = std::max(whole_periods(p, 50), 2 * p.period);
  simulation_setup still = x;
  still.optimizer.lr = 0;
  const weights_moved equal = moved_after(s, still, before + some, false);
  require(equal.elements <= 1e-5,
          fmt::format("{}after {} steps that change no weights (learning rate 0), equal weights of all workers have "
                      "moved by {:.3g}, most in tensor {} ({} elements); expected at most 1e-05: do the weights of an "
                      "average add up to 1?",
                      title(x), before + some, equal.elements, equal.tensor, x.tensors[equal.tensor]));
  // The distance that a worker alone moves in a period: its gradient is multiplied by the number of workers.
  const double n = workers, alone = static_cast<double>(p.period) * x.optimizer.lr * n * std::sqrt(n - 1);
  const weights_moved few = moved_after(s, x, before + some, true);
  if (few.elements <= 1e-4 * alone) return;
  const weights_moved many = moved_after(s, x, before + 8 * some, true);
  const bool drifts = many.elements > 2 * few.elements || many.elements > 0.5 * alone;
  require(
      many.elements <= 0.05 * alone || !drifts,
      fmt::format("{}gradients that cancel out over the workers move the mean of all weights, in {} steps by {:.3g} "
                  "and in {} by {:.3g} of what a worker alone moves in {}; most in tensor {} ({} elements): is the "
                  "matrix of averaging weights doubly stochastic?",
                  title(x), before + some, few.elements / alone, before + 8 * some, many.elements / alone,
                  p.period > 1 ? fmt::format("a period of {} steps", p.period) : "a step", many.tensor,
                  x.tensors[many.tensor]));
}

void conserves(const subject& s) {
  if (some_plan(s).flags & RG_PLAN_SYNCHRONOUS) throw skipped("it is synchronous");
  if (needs_servers(s)) throw skipped("its servers merge what the workers send");
  for (const std::uint32_t workers : accepted_sizes(s, {3, 4, 2, 5}))
    if (workers > 1) expect_conserved(s, workers);
}

} // namespace

std::vector<test> averaging_tests() {
  return {
      {"conserves", "workers that average weights keep their mean, and equal weights stay as they are", conserves},
  };
}
} // namespace regatta::conformance

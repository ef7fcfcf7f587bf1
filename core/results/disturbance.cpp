// SPDX-License-Identifier: Apache-2.0
#include "results/disturbance.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "results/statistics.hpp"

namespace regatta {
namespace {

constexpr double most_steal = 0.02;     // of the host's CPU time
constexpr double least_rate = 0.9;      // of the campaign's median
constexpr double most_run_queue = 0.05; // of the region; only of the baseline, which alone has the machine for itself

constexpr std::pair<const char*, double machine_rates::*> rates_by_name[] = {{"multiply-adds", &machine_rates::fma},
                                                                             {"copies", &machine_rates::copy}};

} // namespace

std::string disturbance_rule() {
  return fmt::format(
      "a repeat is disturbed if the hypervisor gave more than {:g} % of the CPU time of one of its runs to "
      "others, if the rate of multiply-adds or of copies before its round was below {:g} % of the median "
      "of the campaign's rounds until the case's last repeat, or if a baseline waited for a CPU for more than {:g} % "
      "of its "
      "timed region; disturbed repeats are marked and stay in all figures",
      100 * most_steal, 100 * least_rate, 100 * most_run_queue);
}

std::optional<machine_rates> usual_rates(const std::vector<machine_rates>& rounds) {
  if (rounds.empty()) return std::nullopt;
  machine_rates usual;
  for (const auto& [name, rate] : rates_by_name) {
    std::vector<double> values;
    for (const machine_rates& r : rounds) values.push_back(r.*rate);
    usual.*rate = median(values).value_or(0);
  }
  return usual;
}

std::vector<std::string> disturbances(const repeat_figures& repeat, const std::optional<machine_rates>& rates,
                                      const std::optional<machine_rates>& usual) {
  std::vector<std::string> texts;
  double steal = repeat.run.steal.value_or(0), run_queue = 0;
  for (const auto* run : {&repeat.baseline, &repeat.baseline_again, &repeat.contention})
    if (*run) steal = std::max(steal, (*run)->steal.value_or(0));
  for (const auto* run : {&repeat.baseline, &repeat.baseline_again})
    if (*run) run_queue = std::max(run_queue, (*run)->run_queue.value_or(0));
  if (steal > most_steal)
    texts.push_back(fmt::format("the hypervisor gave {:.1f} % of the CPU time to others", 100 * steal));
  if (rates && usual)
    for (const auto& [name, rate] : rates_by_name)
      if ((*rates).*rate < least_rate * ((*usual).*rate))
        texts.push_back(
            fmt::format("the rate of {} was {:.0f} % of the median", name, 100 * ((*rates).*rate) / ((*usual).*rate)));
  if (run_queue > most_run_queue)
    texts.push_back(fmt::format("a baseline waited for a CPU for {:.1f} % of the time", 100 * run_queue));
  return texts;
}

} // namespace regatta

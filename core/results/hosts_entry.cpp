// SPDX-License-Identifier: Apache-2.0
#include "results/hosts_entry.hpp"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/text.hpp"
#include "results/run_entry.hpp"
#include "results/statistics.hpp"

namespace regatta {
namespace {

using nlohmann::json;

// The slowest worker holds the others back if it computes this much longer than the median of the others, and if it was
// the last one in at least this share of the steps, as far as that is known. Of two equal workers each is the last one
// in half of the steps.
constexpr double slower = 1.1;
constexpr double often_last = 2.0 / 3;

json held_back_by(const json& ranks) {
  std::size_t slowest = 0;
  const auto seconds = [&](std::size_t i) { return ranks[i].at("compute_seconds").get<double>(); };
  for (std::size_t i = 1; i < ranks.size(); ++i)
    if (seconds(i) > seconds(slowest)) slowest = i;
  std::vector<double> others;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (i != slowest) others.push_back(seconds(i));
  const json& last = ranks[slowest].at("last");
  const bool holds = seconds(slowest) > slower * *median(others) && (last.is_null() || last >= often_last);
  return holds ? json(slowest) : json(nullptr);
}

} // namespace

json time_entry(const time_parts& parts) {
  json j = json::object();
  for (const auto& [name, part] : time_part_names) j[name] = parts.*part;
  if (parts.blocked == 0)
    j.erase("blocked");
  else
    j["wait"] = j["exposed_communication"] = nullptr;
  return j;
}

time_parts mean_parts(const std::vector<time_parts>& all) {
  time_parts mean;
  for (const time_parts& parts : all)
    for (const auto& [name, part] : time_part_names) mean.*part += parts.*part / static_cast<double>(all.size());
  if (std::ranges::any_of(all, [](const time_parts& parts) { return parts.blocked != 0; })) {
    mean.blocked += mean.wait + mean.exposed_communication;
    mean.wait = mean.exposed_communication = 0;
  }
  return mean;
}

json places_entry(const run_figures& run) {
  json j = json::array();
  for (const rank_place& p : run.places)
    j.push_back({{"host", text_or_null(one_line(p.host))}, {"numa_node", p.numa_node ? json(*p.numa_node) : json()}});
  return j;
}

json clocks_entry(const std::vector<const run_figures*>& runs) {
  const auto badness = [](const run_figures* run) {
    const clock_figures& c = run->clocks;
    return c.uncertainty_seconds.value_or(c.reason.empty() ? -1 : HUGE_VAL);
  };
  const clock_figures& worst = (*std::ranges::max_element(runs, {}, badness))->clocks;
  if (worst.offsets.empty() && worst.reason.empty()) return nullptr;
  json hosts = json::array();
  for (const host_offset& h : worst.offsets)
    hosts.push_back({{"host", one_line(h.host)},
                     {"ahead_seconds", {{"begin", 1e-9 * h.begin.ahead_ns}, {"end", 1e-9 * h.end.ahead_ns}}},
                     {"uncertainty_seconds",
                      {{"begin", 1e-9 * h.begin.uncertainty_ns},
                       {"largest", 1e-9 * h.largest_uncertainty_ns},
                       {"end", 1e-9 * h.end.uncertainty_ns}}}});
  return {{"hosts", hosts},
          {"uncertainty_seconds", or_null(worst.uncertainty_seconds)},
          {"reason", worst.reason.empty() ? json(nullptr) : json(worst.reason)}};
}

json stragglers_entry(const std::vector<const run_figures*>& runs) {
  const std::vector<worker_pace>& first = runs.front()->paces;
  if (first.size() < 2) return nullptr;
  json ranks = json::array();
  for (std::size_t w = 0; w < first.size(); ++w) {
    std::vector<double> seconds, last;
    for (const run_figures* run : runs) {
      if (run->paces.size() != first.size() || run->paces[w].rank != first[w].rank) return nullptr;
      seconds.push_back(run->paces[w].compute_seconds);
      if (run->paces[w].last) last.push_back(*run->paces[w].last);
    }
    json mean = nullptr;
    if (last.size() == runs.size()) {
      double sum = 0;
      for (const double share : last) sum += share;
      mean = sum / static_cast<double>(last.size());
    }
    ranks.push_back({{"rank", first[w].rank},
                     {"host", text_or_null(one_line(first[w].host))},
                     {"compute_seconds", or_null(median(seconds))},
                     {"last", mean}});
  }
  return {{"ranks", ranks}, {"held_back_by", held_back_by(ranks)}};
}

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#include "comm/links.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "comm/outliers.hpp"
#include "results/statistics.hpp"

namespace regatta::comm {
namespace {

constexpr double deviations = 5;
constexpr std::size_t few_ranks = 5; // below, one bad host changes the deviations of half of all links

// The rule of a figure: a link is bad if it is worse than usual by more than share * usual + least.
struct figure_rule {
  link_figure figure;
  bool higher_is_better;
  double share, least;
};
constexpr figure_rule rules[] = {{link_figure::latency, false, 1, 50e-6},
                                 {link_figure::bandwidth, true, 0.15, 0},
                                 {link_figure::loss, false, 0, 0.01}};

void add_marks(std::vector<link_mark>& marks, const std::vector<const rank_link*>& links, const figure_rule& rule,
               bool within) {
  std::map<std::uint32_t, double> best; // by rank
  std::vector<double> values;
  for (const rank_link* l : links) {
    const double value = figure_of(*l, rule.figure);
    if (std::isnan(value)) continue;
    values.push_back(value);
    const auto [known, added] = best.emplace(l->from, value);
    if (!added) known->second = rule.higher_is_better ? std::max(known->second, value) : std::min(known->second, value);
  }
  if (values.size() < 2) return;
  std::vector<double> bests;
  for (const auto& [rank, value] : best) bests.push_back(value);
  const double usual = median(bests).value_or(0);
  // Two values have no spread beside their difference.
  const double spread = bests.size() < 3 ? 0 : robust_spread(bests.size() < few_ranks ? bests : values);
  const double allowed = std::max(rule.share * usual + rule.least, deviations * spread);
  for (const rank_link* l : links) {
    const double value = figure_of(*l, rule.figure);
    const double worse = rule.higher_is_better ? usual - value : value - usual;
    if (worse > allowed) marks.push_back({rule.figure, l->from, l->to, within, value, usual});
  }
}

// Returns how far a link is off, as a factor.
double factor_of(const link_mark& m) {
  constexpr double least = 1e-9; // a usual loss of 0
  const double a = std::max(m.value, least), b = std::max(m.usual, least);
  return std::max(a / b, b / a);
}

} // namespace

const char* name_of(link_figure f) {
  return f == link_figure::latency ? "latency" : f == link_figure::bandwidth ? "bandwidth" : "loss";
}

double figure_of(const rank_link& l, link_figure f) {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  if (f == link_figure::latency) return l.latency > 0 ? l.latency : none;
  if (f == link_figure::bandwidth) return l.bandwidth > 0 ? l.bandwidth : none;
  return l.segments > 0 ? l.retransmitted / l.segments : none;
}

std::vector<link_mark> marks_of(const std::vector<rank_link>& links, const std::vector<std::uint32_t>& host_of) {
  std::vector<link_mark> marks;
  for (const figure_rule& rule : rules)
    for (const bool within : {true, false}) {
      std::vector<const rank_link*> of_kind;
      for (const rank_link& l : links)
        if ((host_of.at(l.from) == host_of.at(l.to)) == within) of_kind.push_back(&l);
      add_marks(marks, of_kind, rule, within);
    }
  return marks;
}

std::vector<round_of_pairs> pairs_of(std::vector<link_mark> marks, std::size_t most) {
  std::ranges::stable_sort(marks, std::greater(), factor_of);
  std::vector<round_of_pairs> rounds;
  for (const link_mark& m : marks) {
    const round_of_pairs pair{{std::min(m.from, m.to), std::max(m.from, m.to)}};
    if (rounds.size() < most && std::ranges::find(rounds, pair) == rounds.end()) rounds.push_back(pair);
  }
  return rounds;
}

void merge(std::vector<rank_link>& all, const rank_link& l) {
  merge(all, std::vector{l});
}

void merge(std::vector<rank_link>& all, const std::vector<rank_link>& more) {
  std::map<rank_pair, std::size_t> places; // thousands of links: a search of the list for each would take seconds
  for (std::size_t i = 0; i < all.size(); ++i) places.emplace(rank_pair{all[i].from, all[i].to}, i);
  for (const rank_link& l : more) {
    const auto [place, is_new] = places.emplace(rank_pair{l.from, l.to}, all.size());
    if (is_new) {
      all.push_back(l);
      continue;
    }
    rank_link& known = all[place->second];
    known.latency = std::min(known.latency, l.latency);
    known.bandwidth = std::max(known.bandwidth, l.bandwidth);
    known.segments += l.segments;
    known.retransmitted += l.retransmitted;
  }
}

} // namespace regatta::comm

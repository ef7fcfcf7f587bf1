// SPDX-License-Identifier: Apache-2.0
#include "comm/survey.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "results/statistics.hpp"

namespace regatta::comm {
namespace {

constexpr std::size_t rounds_alone = 3;         // each rank then has three links measured while no other pair sends
constexpr double least_rate_at_once = 0.7;      // of the rate alone
constexpr double most_seconds_at_once = 90;     // for all pairs: 64 hosts are to be surveyed in five minutes
constexpr std::size_t rounds_between_looks = 2; // at the time
constexpr std::size_t least_tried = 8;          // pairs, to know the rate that they reach at once
constexpr unsigned most_sievings = 3;
constexpr double low_at_once = 0.85, high_latency = 2, least_latency = 50e-6, high_loss = 0.01; // beside the usual

class surveying {
public:
  surveying(const plan& p, const std::function<bool(const rank_pair&)>& is_open, const measure_rounds& measure)
      : plan_(p), is_open_(is_open), measure_(measure), rounds_(open(tournament(p.ranks))) {
    for (const round_of_pairs& r : rounds_) survey_.pairs += r.size();
  }

  survey run() {
    if (plan_.pairs.many) {
      measure_alone(sample(rounds_, rounds_alone));
      measure_bisections();
      const std::size_t width = bearable_width();
      measure_at_once(width);
      look_closer(width);
    } else {
      if (plan_.pairs.at_once && plan_.pairs.hosts) measure_bisections();
      if (plan_.pairs.at_once) measure_at_once(plan_.ranks / 2);
      if (plan_.pairs.alone) measure_alone(rounds_);
    }
    check_marks(survey_.alone.empty() ? survey_.at_once : survey_.alone);
    if (!plan_.pairs.many) survey_.rate_at_once = share_of_rate_alone(survey_.at_once);
    return std::move(survey_);
  }

private:
  std::vector<round_of_pairs> open(std::vector<round_of_pairs> rounds) const {
    for (round_of_pairs& round : rounds)
      std::erase_if(round, [this](const rank_pair& pair) { return !is_open_(pair); });
    std::erase_if(rounds, [](const round_of_pairs& round) { return round.empty(); });
    return rounds;
  }
  void add(std::vector<rank_link>& all, const std::vector<round_of_pairs>& rounds, const char* name, double& seconds,
           effort e = effort::normal) {
    if (rounds.empty()) return;
    const measured_rounds m = measure_(rounds, name, e);
    merge(all, m.links);
    seconds += m.seconds;
  }

  void measure_alone(const std::vector<round_of_pairs>& rounds) {
    add(survey_.alone, one_by_one(rounds), "pairs alone", survey_.seconds_alone);
  }

  void measure_bisections() {
    const auto sum_of = [&](const round_of_pairs& round, const char* name) {
      double sum = 0;
      for (const rank_link& l : measured_at_once({round}, name, effort::normal))
        sum += l.bandwidth / 2; // the directions take turns
      return sum;
    };
    survey_.halves = sum_of(across_halves(plan_.ranks), "halves");
    survey_.neighbours = sum_of(of_neighbours(plan_.ranks), "neighbours");
  }
  // Measures links that are not kept.
  std::vector<rank_link> measured_at_once(const std::vector<round_of_pairs>& rounds, const char* name, effort e) {
    std::vector<rank_link> links;
    add(links, open(rounds), name, survey_.seconds_at_once, e);
    return links;
  }

  // Returns how many pairs at once reach most of the rates that they have alone.
  std::size_t bearable_width() {
    if (rounds_.empty()) return 1;
    for (std::size_t width = std::max(plan_.ranks / 2, 1U);; width /= 2) {
      auto some = divided({rounds_.front()}, width);
      some.resize(std::min(some.size(), (least_tried + width - 1) / width));
      survey_.rate_at_once = share_of_rate_alone(measured_at_once(some, "pairs at once", effort::quick));
      if (survey_.rate_at_once >= least_rate_at_once || width <= 1) return width;
    }
  }
  // Returns the median share; 0 if no link was measured alone.
  double share_of_rate_alone(const std::vector<rank_link>& at_once) const {
    std::map<rank_pair, double> alone;
    for (const rank_link& l : survey_.alone) alone[{l.from, l.to}] = l.bandwidth;
    std::vector<double> shares;
    for (const rank_link& l : at_once)
      if (const double rate = alone[{l.from, l.to}]; rate > 0) shares.push_back(l.bandwidth / rate);
    return median(shares).value_or(0);
  }

  void measure_at_once(std::size_t width) {
    survey_.pairs_at_once = std::max<std::size_t>(width, 1);
    const std::size_t step = plan_.pairs.many ? rounds_between_looks : std::max<std::size_t>(rounds_.size(), 1);
    double& seconds = survey_.seconds_at_once;
    for (std::size_t i = 0; i < rounds_.size() && seconds < most_seconds_at_once; i += step) {
      const auto first = rounds_.begin() + static_cast<std::ptrdiff_t>(i);
      const auto end = rounds_.begin() + static_cast<std::ptrdiff_t>(std::min(i + step, rounds_.size()));
      add(survey_.at_once, divided({first, end}, survey_.pairs_at_once), "pairs at once", seconds,
          plan_.pairs.many ? effort::quick : effort::normal);
    }
  }

  // Measures what is far off at once again with fewer pairs at once, where the best counts, and what is left alone.
  void look_closer(std::size_t width) {
    double& seconds = survey_.seconds_again;
    // Even a third of all pairs: where pairs disturb each other, many healthy links look worse than a slow one.
    std::vector<rank_pair> left = doubtful(survey_.pairs);
    for (unsigned i = 0; i < most_sievings && left.size() > plan_.ranks / 4; ++i) {
      width = std::max<std::size_t>(width / 2, 1);
      add(survey_.at_once, packed(left, width), "pairs again", seconds, effort::quick);
      left = doubtful(survey_.pairs / 2);
    }
    add(survey_.alone, packed(doubtful(plan_.ranks / 2), 1), "pairs again, alone", seconds);
  }

  // Returns the pairs that have a link far off the usual one at once, the worst first, at most a third of `most` and
  // one for each figure: otherwise the latencies, which other pairs disturb most, would leave no room for the
  // bandwidths. Pairs of hosts that are slow alone are left out.
  std::vector<rank_pair> doubtful(std::size_t most) const {
    constexpr link_figure figures[] = {link_figure::bandwidth, link_figure::loss, link_figure::latency};
    std::set<std::uint32_t> slow;
    for (const link_figure f : figures)
      for (const bad_end& e : bad_ends(survey_.alone, f, plan_.host_of)) slow.insert(e.rank);
    std::vector<rank_pair> pairs;
    for (const link_figure f : figures) {
      std::vector<double> values;
      for (const rank_link& l : survey_.at_once)
        if (const double v = figure_of(l, f); !std::isnan(v)) values.push_back(v);
      const double usual = median(values).value_or(0);
      std::vector<std::pair<double, rank_pair>> found;
      for (const rank_link& l : survey_.at_once)
        if (const double off = excess(f, figure_of(l, f), usual);
            off > 1 && !slow.contains(l.from) && !slow.contains(l.to))
          found.emplace_back(off, rank_pair{std::min(l.from, l.to), std::max(l.from, l.to)});
      std::ranges::stable_sort(found, std::greater(), [](const auto& x) { return x.first; });
      const std::size_t end = pairs.size() + most / 3 + 1;
      for (const auto& [off, pair] : found)
        if (pairs.size() < end && std::ranges::find(pairs, pair) == pairs.end()) pairs.push_back(pair);
    }
    return pairs;
  }
  // Returns above 1 for a figure that is far off, and more for one that is further off.
  static double excess(link_figure f, double value, double usual) {
    if (std::isnan(value)) return 0;
    if (f == link_figure::bandwidth) return low_at_once * usual / value;
    return value / (f == link_figure::latency ? high_latency * usual + least_latency : usual + high_loss);
  }

  void check_marks(std::vector<rank_link>& links) {
    for (unsigned i = 1; i < plan_.pairs.repeats; ++i) {
      const auto again = pairs_of(marks_of(links, plan_.host_of), 4 * static_cast<std::size_t>(plan_.ranks));
      if (again.empty()) break;
      add(links, again, "pairs again, alone", survey_.seconds_again);
    }
  }

  const plan& plan_;
  const std::function<bool(const rank_pair&)>& is_open_;
  const measure_rounds& measure_;
  std::vector<round_of_pairs> rounds_; // of the tournament, with open pairs only
  survey survey_;
};

} // namespace

survey survey_links(const plan& p, const std::function<bool(const rank_pair&)>& is_open,
                    const measure_rounds& measure) {
  return surveying(p, is_open, measure).run();
}

std::vector<bad_end> bad_ends(const std::vector<rank_link>& links, link_figure figure,
                              const std::vector<std::uint32_t>& host_of) {
  std::vector<rank_pair> bad, measured;
  for (const link_mark& m : marks_of(links, host_of))
    if (m.figure == figure) bad.emplace_back(m.from, m.to);
  for (const rank_link& l : links)
    if (!std::isnan(figure_of(l, figure))) measured.emplace_back(l.from, l.to);
  return bad_ends(bad, measured, static_cast<std::uint32_t>(host_of.size()));
}

std::vector<bad_end> bad_ends(const std::vector<rank_pair>& bad, const std::vector<rank_pair>& measured,
                              std::uint32_t ranks) {
  std::vector<bad_end> found;
  std::set<std::uint32_t> ranks_found;
  const std::set<rank_pair> is_bad(bad.begin(), bad.end());
  for (;;) {
    std::vector<bad_end> ends;
    for (std::uint32_t r = 0; r < ranks; ++r)
      for (const bool sends : {true, false}) ends.push_back({r, sends, 0, 0});
    const auto count = [&](std::uint32_t rank, std::uint32_t other, bool sends, bool bad_link) {
      if (ranks_found.contains(other)) return;
      bad_end& e = ends[2 * rank + (sends ? 0 : 1)];
      ++e.measured;
      if (bad_link) ++e.bad;
    };
    for (const rank_pair& l : measured) {
      count(l.first, l.second, true, is_bad.contains(l));
      count(l.second, l.first, false, is_bad.contains(l));
    }
    std::erase_if(ends, [&](const bad_end& e) {
      return 2 * e.bad <= e.measured || e.bad < 2 ||
             std::ranges::any_of(found, [&](const bad_end& f) { return f.rank == e.rank && f.sends == e.sends; });
    });
    if (ends.empty()) return found;
    const auto worst = std::ranges::max_element(ends, {}, &bad_end::bad);
    ranks_found.insert(worst->rank);
    found.push_back(*worst);
  }
}

} // namespace regatta::comm

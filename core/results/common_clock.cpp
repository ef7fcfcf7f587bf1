// SPDX-License-Identifier: Apache-2.0
#include "results/common_clock.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include <fmt/format.h>

#include "base/text.hpp"
#include "base/units.hpp"

namespace regatta {

common_clock::common_clock(const std::vector<timed_host>& hosts, const std::vector<const rank_record*>& workers,
                           double step_seconds) {
  std::set<std::string> names;
  for (const rank_record* w : workers) names.insert(w->host);
  if (hosts.empty() || names.size() < 2) return; // without a launcher, or simulated: one clock
  std::vector<double> uncertainties;
  for (const std::string& name : names) {
    const auto known = std::ranges::find(hosts, name, &timed_host::name);
    if (known == hosts.end() || known->clock.points.empty()) {
      reason_ = fmt::format("the clock of host {} is unknown", one_line(name));
      continue;
    }
    const clock_course& clock = courses_[name] = known->clock;
    std::int64_t begin = INT64_MAX, end = INT64_MIN;
    host_offset offset{name, {}, {}, 0};
    for (const rank_record* w : workers) {
      if (w->host != name) continue;
      begin = std::min(begin, w->region_begin);
      end = std::max(end, w->region_end);
      for (const step_time& s : w->steps)
        offset.largest_uncertainty_ns = std::max(offset.largest_uncertainty_ns, clock.at(s.compute_end).uncertainty_ns);
    }
    offset.begin = clock.at(begin);
    offset.end = clock.at(end);
    for (const clock_estimate& e : {offset.begin, offset.end})
      offset.largest_uncertainty_ns = std::max(offset.largest_uncertainty_ns, e.uncertainty_ns);
    uncertainties.push_back(offset.largest_uncertainty_ns);
    offsets_.push_back(std::move(offset));
  }
  if (!reason_.empty()) return;
  std::ranges::sort(uncertainties, std::greater());
  uncertainty_ = 1e-9 * (uncertainties[0] + uncertainties[1]);
  // Without exact figures, so that equal warnings of many cases are joined into one line.
  if (*uncertainty_ > largest_clock_share * step_seconds)
    reason_ = fmt::format("the uncertainty of the hosts' clocks is above {:.0f} % of the median step",
                          100 * largest_clock_share);
}

std::int64_t common_clock::ahead(const rank_record& worker, std::int64_t at) const {
  const auto course = courses_.find(worker.host);
  return course == courses_.end() ? 0 : std::llround(course->second.at(at).ahead_ns);
}

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#include "clocks/clock_course.hpp"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/json_members.hpp"

namespace regatta {

clock_estimate clock_course::at(std::int64_t at) const {
  if (points.empty()) return {};
  const auto after = std::ranges::lower_bound(points, at, {}, &point::at);
  if (after == points.begin() || after == points.end()) {
    const point& nearest = after == points.end() ? points.back() : points.front();
    const double distance = std::abs(static_cast<double>(at - nearest.at));
    return {nearest.is.ahead_ns, nearest.is.uncertainty_ns + clock_drift * distance};
  }
  const point& before = *std::prev(after);
  const auto from = static_cast<double>(at - before.at), to = static_cast<double>(after->at - at);
  const auto between = [&](double a, double b) { return (a * to + b * from) / (from + to); };
  // The true value leaves each point by at most the drift, and the line between the points by the mean of both bounds.
  return {between(before.is.ahead_ns, after->is.ahead_ns),
          between(before.is.uncertainty_ns, after->is.uncertainty_ns) + 2 * clock_drift * from * to / (from + to)};
}

std::int64_t clock_course::to_reference(std::int64_t time) const {
  return time - std::llround(at(time).ahead_ns);
}

nlohmann::json to_json(const timed_host& host) {
  nlohmann::json clock = nlohmann::json::array();
  for (const clock_course::point& p : host.clock.points) clock.push_back({p.at, p.is.ahead_ns, p.is.uncertainty_ns});
  return {{"name", host.name}, {"clock", std::move(clock)}};
}

timed_host timed_host_from_json(const nlohmann::json& j) {
  timed_host host;
  host.name = member<std::string>(j, "name");
  for (const auto& p : member<std::vector<nlohmann::json>>(j, "clock"))
    host.clock.points.push_back({element<std::int64_t>(p, 0), {element<double>(p, 1), element<double>(p, 2)}});
  std::ranges::stable_sort(host.clock.points, {}, &clock_course::point::at);
  return host;
}

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#include "clocks/host_clock.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace regatta {

void host_clock::add(std::int64_t sent, std::int64_t received, std::int64_t there) {
  if (received < sent) return;
  keep({sent, received, there});
  while (exchanges_.size() > most_exchanges) {
    interval_ = interval_ ? 2 * interval_ : shortest_interval;
    for (const exchange& e : std::exchange(exchanges_, {})) keep(e);
  }
}

void host_clock::keep(const exchange& e) {
  if (interval_ == 0 || exchanges_.empty() || exchanges_.back().sent / interval_ != e.sent / interval_)
    exchanges_.push_back(e);
  else if (e.half() < exchanges_.back().half())
    exchanges_.back() = e;
}

std::optional<clock_estimate> host_clock::at(std::int64_t time) const {
  if (exchanges_.empty()) return std::nullopt;
  double low = -std::numeric_limits<double>::infinity(), high = -low, best = high;
  for (const exchange& e : exchanges_) {
    const double ahead = static_cast<double>(e.there) - e.middle();
    const double within = e.half() + clock_drift * std::abs(static_cast<double>(time) - e.middle());
    low = std::max(low, ahead - within);
    high = std::min(high, ahead + within);
    best = std::min(best, within);
  }
  // The bounds contradict each other if the clocks drift faster than assumed.
  return clock_estimate{(low + high) / 2, low <= high ? (high - low) / 2 : (low - high) / 2 + best};
}

clock_course host_clock::course() const {
  clock_course course;
  if (exchanges_.empty()) return course;
  const auto first = static_cast<std::int64_t>(exchanges_.front().middle());
  const auto last = std::max(first, static_cast<std::int64_t>(exchanges_.back().middle()));
  const auto count = static_cast<std::int64_t>(std::min(exchanges_.size(), most_points));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t time = count == 1 ? first : first + (last - first) / (count - 1) * i;
    const clock_estimate is = *at(time);
    course.points.push_back({time + std::llround(is.ahead_ns), is});
  }
  std::ranges::stable_sort(course.points, {}, &clock_course::point::at);
  return course;
}

} // namespace regatta

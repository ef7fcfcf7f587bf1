// SPDX-License-Identifier: Apache-2.0
#include "timeline/alignment.hpp"

#include "base/failure.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace regatta {

void align_clocks(std::vector<rank_trace>& ranks, const std::map<std::string, clock_course>& courses) {
  const auto other = std::ranges::find_if(ranks, [&](const rank_trace& r) { return r.clock != ranks.front().clock; });
  if (other == ranks.end()) return;
  for (rank_trace& r : ranks) {
    const auto course = courses.find(r.clock);
    if (course == courses.end() || course->second.points.empty())
      throw failure(exit_code::run,
                    fmt::format("ranks {} and {} run on different machines, and the offset of their clocks is unknown: "
                                "a trace needs the ranks of one machine",
                                ranks.front().rank, other->rank));
    for (trace_event& e : r.events)
      for (std::uint64_t* time : {&e.begin, &e.end})
        *time = static_cast<std::uint64_t>(course->second.to_reference(static_cast<std::int64_t>(*time)));
  }
}

void keep_traced_steps(std::vector<rank_trace>& ranks) {
  std::uint64_t first = UINT64_MAX, last = 0;
  for (const rank_trace& r : ranks)
    for (const trace_event& e : r.events)
      if (r.text(e.category) == "step") {
        first = std::min(first, e.begin);
        last = std::max(last, e.end);
      }
  if (first > last) return;
  for (rank_trace& r : ranks) {
    const bool longer =
        std::any_of(r.events.begin(), r.events.end(), [&](const trace_event& e) { return e.end > last; });
    const bool has_step = std::any_of(r.events.begin(), r.events.end(),
                                      [&](const trace_event& e) { return r.text(e.category) == "step"; });
    if (longer && !has_step) r.dropped = 0;
    std::erase_if(r.events, [&](const trace_event& e) { return e.end < first || e.begin > last; });
  }
}

} // namespace regatta

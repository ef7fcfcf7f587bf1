// SPDX-License-Identifier: Apache-2.0
#include "timeline/alignment.hpp"

#include "base/failure.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace regatta {

void align_clocks(std::vector<rank_trace>& ranks, const std::map<std::string, std::int64_t>& offsets) {
  for (rank_trace& r : ranks) {
    if (r.clock == ranks.front().clock) continue;
    const auto offset = offsets.find(r.clock);
    if (offset == offsets.end())
      throw failure(exit_code::run,
                    fmt::format("ranks {} and {} run on different machines, and the offset of their clocks is unknown: "
                                "a trace needs the ranks of one machine",
                                ranks.front().rank, r.rank));
    const auto by = static_cast<std::uint64_t>(offset->second); // wraps around, so a negative offset subtracts
    for (trace_event& e : r.events) {
      e.begin += by;
      e.end += by;
    }
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

// SPDX-License-Identifier: Apache-2.0
//
// Assigns the events of a rank to tracks on which spans nest perfectly.
#pragma once

#include "timeline/rank_trace.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace regatta {

struct trace_track {
  std::string name;
  event_origin origin; // of its events; the executor's track 0 is on that of the compute thread
  std::uint32_t number = 0;
  // In an order in which a span comes before those that it contains. Counters are left out.
  std::vector<const trace_event*> events;
};

// Returns the tracks of a rank in the order in which Perfetto shows them: by origin, then by number (messages: by lane,
// peer and direction). The events must outlive them.
std::vector<trace_track> tracks_of(const rank_trace& r);

// Returns the name of an event for people, such as "receive bucket 3 from rank 1".
std::string display_name(const rank_trace& r, const trace_event& e);

} // namespace regatta

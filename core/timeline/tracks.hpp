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
  event_origin origin;      // of its events; the executor's track 0 is on that of the compute thread
  std::uint32_t number = 0; // trace_event::track of its events; of messages the lane
  // In an order in which a span comes before those that it contains. Counters are left out.
  std::vector<const trace_event*> events;
};

// Returns the tracks of a rank in the order in which Perfetto shows them: by origin, then by number (messages: by lane,
// peer and direction). Spans that overlap without nesting are on several tracks with the same name, origin and number.
// The events must outlive the tracks.
std::vector<trace_track> tracks_of(const rank_trace& r);

// Whether an event belongs to the compute thread, as spans of the executor's track 0 do.
inline bool is_on_compute_thread(const trace_event& e) {
  return e.origin == event_origin::compute || (e.origin == event_origin::executor && e.track == 0);
}

// A part of a thread's time, named by the innermost span that covers it.
struct span_segment {
  std::uint64_t begin, end;
  const trace_event* innermost;
};

// Cuts nested spans of one thread into disjoint segments, ascending. The events must outlive them.
std::vector<span_segment> segments_of(std::vector<const trace_event*> spans);

// Returns the name of an event for people, such as "receive bucket 3 from rank 1".
std::string display_name(const rank_trace& r, const trace_event& e);

} // namespace regatta

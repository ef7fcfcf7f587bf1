// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "timeline/rank_trace.hpp"

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

namespace regatta {

// Identifies a message: the n-th from one rank to another on a lane is the n-th that the other one receives there.
struct message_id {
  std::uint32_t from, to, lane;
  std::uint64_t sequence;
  friend bool operator<(const message_id& a, const message_id& b) {
    return std::tie(a.from, a.to, a.lane, a.sequence) < std::tie(b.from, b.to, b.lane, b.sequence);
  }
};

// Requires that `e`, of rank `rank`, is a message.
inline message_id id_of(std::uint32_t rank, const trace_event& e) {
  return e.kind == event_kind::send ? message_id{rank, e.peer, e.lane, e.sequence}
                                    : message_id{e.peer, rank, e.lane, e.sequence};
}

// Returns the sends of all ranks. The events must outlive it.
inline std::map<message_id, const trace_event*> sends_of(const std::vector<rank_trace>& ranks) {
  std::map<message_id, const trace_event*> sends;
  for (const rank_trace& r : ranks)
    for (const trace_event& e : r.events)
      if (e.kind == event_kind::send) sends[id_of(r.rank, e)] = &e;
  return sends;
}

} // namespace regatta

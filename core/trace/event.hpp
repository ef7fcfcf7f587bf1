// SPDX-License-Identifier: Apache-2.0
//
// What a trace consists of: the events of each rank. They are plain data, so that runs and simulations write the same
// files (timeline/perfetto.hpp). docs/trace.md shows them to users.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace regatta {

enum class event_kind : std::uint8_t {
  span,    // something that took from `begin` to `end`
  instant, // something that happened at `begin`
  counter, // `number` is the value of the counter `name` from `begin` on
  send,    // a message, from the strategy's call until its completion
  receive,
};

// Who recorded an event. A track is a pair of origin and number; docs/trace.md lists them.
enum class event_origin : std::uint8_t {
  compute,   // the compute thread: phases of a step, waits
  executor,  // the executor's spans; its track 0 is the compute thread
  loop,      // the strategy's operations, on whichever thread runs the strategy
  strategy,  // the strategy's own spans
  functions, // the thread of functions of the strategy's own
  messages,  // sends, receives and native collectives
  transport, // the transport's own spans
};
inline constexpr std::uint8_t origins = 7;

// No event has a value here.
inline constexpr std::uint32_t no_bucket = UINT32_MAX;

struct trace_event {
  std::uint64_t begin = 0, end = 0; // ns of the host's CLOCK_MONOTONIC, or of a simulation; begin <= end
  std::uint64_t number = 0;         // of `number_name`; of a message: its bytes
  std::uint64_t sequence = 0;       // of a message: how many went the same way before (same ranks and lane)
  // Texts are indices into rank_trace::strings; 0: none. `number_name`: what `number` counts, such as "bytes".
  std::uint32_t name = 0, category = 0, number_name = 0;
  std::uint32_t track = 0; // number within the origin
  // Of a message: the other rank, the lane, and the bucket whose gradients or weights it carries (or no_bucket).
  std::uint32_t peer = 0, lane = 0, bucket = no_bucket;
  event_kind kind = event_kind::span;
  event_origin origin = event_origin::compute;
  std::uint16_t unused = 0;
};
// An array of events is sent as its bytes.
static_assert(std::has_unique_object_representations_v<trace_event>);

struct rank_trace {
  std::uint32_t rank = 0;
  std::string role;                     // "worker 0 + server 0"
  std::string clock;                    // names the clock of all times: ranks with equal names share it
  std::uint64_t dropped = 0;            // events for which there was no memory
  std::vector<std::string> strings{""}; // texts of the events; the first one is empty
  std::vector<trace_event> events;      // in any order

  const std::string& text(std::uint32_t index) const { return strings.at(index); }
};

} // namespace regatta

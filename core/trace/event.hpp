// SPDX-License-Identifier: Apache-2.0
//
// An event of a trace, as plain data: runs and simulations write the same files (timeline/perfetto.hpp).
#pragma once

#include <cstdint>
#include <type_traits>

namespace regatta {

enum class event_kind : std::uint8_t {
  span,    // something that took from `begin` to `end`
  instant, // something that happened at `begin`
  counter, // `number` is the value of the counter `name` from `begin` on
  send,    // a message, from the strategy's call until its completion
  receive,
};

// The component that recorded an event. A track is a pair of origin and number; docs/trace.md lists them.
enum class event_origin : std::uint8_t {
  compute,   // the compute thread: phases of a step, waits
  executor,  // the executor's spans; its track 0 is the compute thread
  loop,      // the strategy's operations, on whichever thread runs the strategy
  strategy,  // the strategy's own spans
  functions, // the thread of functions of the strategy's own
  messages,  // sends, receives and native collectives
  transport, // the transport's own spans
};
inline constexpr std::uint8_t origins = 7; // number of values of event_origin

// Of a message that carries no bucket, or an unknown one, and of other events.
inline constexpr std::uint32_t no_bucket = UINT32_MAX;

struct trace_event {
  std::uint64_t begin = 0, end = 0; // ns of the host's CLOCK_MONOTONIC, or of a simulation; begin <= end
  std::uint64_t number = 0;         // of `number_name`; of a message: its bytes
  std::uint64_t sequence = 0;       // of a message: how many went the same way before (same ranks and lane)
  // Texts are indices into rank_trace::strings; 0: the empty text. number_name: what `number` counts, such as "bytes".
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

} // namespace regatta

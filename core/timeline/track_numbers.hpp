// SPDX-License-Identifier: Apache-2.0
//
// The identifiers of processes and tracks in a file of this program: they say what they are of, so that the file can be
// read again.
#pragma once

#include "trace/event.hpp"

#include <cstdint>

namespace regatta {

struct track_number {
  event_origin origin = event_origin::compute;
  std::uint32_t track = 0; // number within the origin, below 2^20; of messages the lane
  std::uint64_t row = 0;   // from 1, below 2^16: tracks of spans that overlap; 0: not a track, but the process
};

// Returns the identifier of a track, or of a process with track_number{}. `process` counts from 1.
constexpr std::uint64_t track_uuid(std::uint64_t process, track_number t) {
  return process << 40 | std::uint64_t{static_cast<std::uint8_t>(t.origin)} << 36 |
         std::uint64_t{t.track & 0xFFFFFU} << 16 | (t.row & 0xFFFFU);
}
// Returns the identifier of a counter of a process. It differs from those of tracks by an origin that no event has.
constexpr std::uint64_t counter_uuid(std::uint64_t process, std::uint64_t number) {
  return process << 40 | std::uint64_t{15} << 36 | number;
}
// process_of() and number_of() return the arguments of track_uuid() for this identifier.
constexpr std::uint64_t process_of(std::uint64_t uuid) {
  return uuid >> 40;
}
constexpr bool is_process(std::uint64_t uuid) {
  return (uuid & 0xFFFFFFFFFFU) == 0;
}
constexpr track_number number_of(std::uint64_t uuid) {
  return {static_cast<event_origin>(uuid >> 36 & 15), static_cast<std::uint32_t>(uuid >> 16 & 0xFFFFFU),
          uuid & 0xFFFFU};
}

} // namespace regatta

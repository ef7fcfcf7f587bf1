// SPDX-License-Identifier: Apache-2.0
//
// Frames of a host's ranks as one frame to the coordinator, so that a barrier of a host with many ranks costs one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "control/channel.hpp"

namespace regatta {

struct rank_frame {
  std::uint32_t rank;
  message frame;
};

// Holds frames after which a rank waits for an answer (its part of an all-gather among all ranks, its result) until all
// ranks wait.
class merged_frames {
public:
  // Returns whether the frame may be added: together with what is held it is no longer than a frame may be.
  bool has_room(const message& frame) const;
  // Adds a frame of one of `running` ranks that have not ended. Returns whether take() is due: all of them wait, the
  // frame is of another kind, or many bytes are held. Requires has_room(). Throws nlohmann::json::exception if the
  // header lacks its type.
  bool add(std::uint32_t rank, message&& frame, std::size_t running);
  // Notes that the coordinator has sent something to these ranks: they wait no longer.
  void answered(std::span<const std::uint32_t> ranks);
  bool empty() const noexcept { return held_.empty(); }
  // Returns the frames that are held as one, in their order, and holds none.
  message take();

private:
  std::vector<rank_frame> held_;
  std::set<std::uint32_t> waiting_;
  std::size_t bytes_ = 0; // of the payloads
};

// Returns the frames of which take() made one. Throws nlohmann::json::exception if a member is missing or wrong,
// failure (run) if the payload is shorter than its parts.
std::vector<rank_frame> split_frames(const message& merged);

} // namespace regatta

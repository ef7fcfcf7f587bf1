// SPDX-License-Identifier: Apache-2.0
//
// The coordinator's side of an all-gather, named by its tag, among some ranks or all. A rank takes part in one at a
// time, so the state is one blob for each rank.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "control/blob.hpp"

namespace regatta {

class all_gather {
public:
  explicit all_gather(std::size_t ranks) : ranks_(ranks) {}

  // Adds the part of a rank to the all-gather `tag` among `members`; empty: all ranks. Once all members wait in the
  // same `tag` with the same members, returns their parts in the order of `members` and forgets them; before, nullopt.
  // Throws failure (run) if this rank already waits in an all-gather or has left, and std::out_of_range for a rank that
  // does not exist.
  std::optional<std::vector<blob>> add(std::uint32_t rank, std::string tag, blob part,
                                       std::vector<std::uint32_t> members = {});

  // Notes that the rank takes part in no further all-gather.
  void leave(std::uint32_t rank) { ranks_.at(rank).left = true; }

  // Returns the sentence for an error if ranks wait for ever: every rank waits or has left, and some wait, because tags
  // or members differ or a rank has left. Else nullopt.
  std::optional<std::string> deadlock() const;

private:
  struct entry {
    std::optional<std::string> tag;     // tag of the all-gather in which it waits
    std::vector<std::uint32_t> members; // of that all-gather
    blob part;
    bool left = false;
  };
  std::vector<entry> ranks_;
};

} // namespace regatta

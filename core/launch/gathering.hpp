// SPDX-License-Identifier: Apache-2.0
//
// The coordinator's side of an all-gather. A rank takes part in one at a time, so the state is one blob for each rank.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "control/blob.hpp"

namespace regatta {

class gathering {
public:
  explicit gathering(std::size_t ranks) : ranks_(ranks) {}

  // Adds the part of a rank. Returns all parts by rank once the last has arrived, and resets. Throws failure if this
  // rank already waits in an all-gather or has left.
  std::optional<std::vector<blob>> add(std::uint32_t rank, std::string tag, blob part);

  // The rank takes part in no later all-gather.
  void leave(std::uint32_t rank);

  // Returns why waiting ranks would wait for ever; nullopt if more ranks can still arrive.
  std::optional<std::string> deadlock() const;

private:
  struct entry {
    std::optional<std::string> tag; // tag of the all-gather in which it waits
    blob part;
    bool left = false;
  };
  std::vector<entry> ranks_;
};

} // namespace regatta

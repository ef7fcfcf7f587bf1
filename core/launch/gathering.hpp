// SPDX-License-Identifier: Apache-2.0
//
// The coordinator's half of an all-gather. A rank waits in one at a time, so the state is one blob a rank.
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

  // The rank's contribution. Returns all, by rank, once the last has come, and starts anew. Throws failure if this rank
  // already waits or has left.
  std::optional<std::vector<blob>> add(std::uint32_t rank, std::string tag, blob part);

  // The rank takes part no more.
  void leave(std::uint32_t rank);

  // Why those who wait would wait for ever, or nothing while they need not.
  std::optional<std::string> deadlock() const;

private:
  struct entry {
    std::optional<std::string> tag; // what it waits in
    blob part;
    bool left = false;
  };
  std::vector<entry> ranks_;
};

} // namespace regatta

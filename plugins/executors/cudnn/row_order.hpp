// SPDX-License-Identifier: Apache-2.0
//
// Which ids of a batch name which row, found on the host: so a kernel can add up what belongs to a row in the order of
// the samples, without atomic additions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cudnn {

class row_order {
public:
  explicit row_order(std::size_t most) { keys_.reserve(most); }

  // Of ids[0 .. count), those under 0 left out: rows[k], ascending, are named by the ids number order[begin[k]] to
  // order[begin[k + 1] - 1], ascending. Returns how many rows there are. Room: count, begin count + 1. Allocates nothing
  // where count is at most what the constructor was told.
  std::int32_t sort(const std::int32_t* ids, std::size_t count, std::int32_t* rows, std::int32_t* begin,
                    std::int32_t* order) {
    keys_.clear();
    for (std::size_t i = 0; i < count; ++i)
      if (ids[i] >= 0) keys_.push_back(static_cast<std::uint64_t>(ids[i]) << 32 | i);
    std::sort(keys_.begin(), keys_.end());
    std::int32_t found = 0;
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      const auto row = static_cast<std::int32_t>(keys_[i] >> 32);
      if (i == 0 || rows[found - 1] != row) {
        rows[found] = row;
        begin[found++] = static_cast<std::int32_t>(i);
      }
      order[i] = static_cast<std::int32_t>(keys_[i] & 0xffffffff);
    }
    begin[found] = static_cast<std::int32_t>(keys_.size());
    return found;
  }

private:
  std::vector<std::uint64_t> keys_; // row and number of the id
};

} // namespace cudnn

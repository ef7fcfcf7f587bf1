// SPDX-License-Identifier: Apache-2.0
//
// Sorts the ids of a batch by table row on the host, so that a kernel can sum the gradients of a row in the order of
// the samples, without atomic additions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace cudnn {

class row_order {
public:
  explicit row_order(std::size_t most) {
    keys_.reserve(most);
    sorted_.reserve(most);
  }

  // Sorts ids[0 .. count); ids below 0 are skipped. rows[k] are the distinct rows, ascending. The indices into `ids`
  // that name rows[k] are order[begin[k]] to order[begin[k + 1] - 1], ascending. Returns the number of rows. `rows` and
  // `order` need space for count elements, `begin` for count + 1. Allocates nothing if count is at most the
  // constructor's `most`.
  std::int32_t sort(const std::int32_t* ids, std::size_t count, std::int32_t* rows, std::int32_t* begin,
                    std::int32_t* order) {
    keys_.clear();
    std::uint64_t bits = 0; // bitwise or of all keys
    for (std::size_t i = 0; i < count; ++i) {
      if (ids[i] < 0) continue;
      keys_.push_back(static_cast<std::uint64_t>(ids[i]) << 32 | i);
      bits |= keys_.back();
    }
    for (unsigned shift = 32; shift < 64 && bits >> shift; shift += digit) sort_by_digit(shift);
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
  // One pass of a radix sort (Knuth, The Art of Computer Programming 3, section 5.2.5); stable.
  void sort_by_digit(unsigned shift) {
    std::array<std::size_t, std::size_t{1} << digit> place{};
    const auto digit_of = [&](std::uint64_t key) { return key >> shift & (place.size() - 1); };
    for (const std::uint64_t key : keys_) ++place[digit_of(key)];
    std::exclusive_scan(place.begin(), place.end(), place.begin(), std::size_t{0});
    sorted_.resize(keys_.size());
    for (const std::uint64_t key : keys_) sorted_[place[digit_of(key)]++] = key;
    keys_.swap(sorted_);
  }

  static constexpr unsigned digit = 11;
  std::vector<std::uint64_t> keys_, sorted_; // row in the upper 32 bits, index into `ids` in the lower 32 bits
};

} // namespace cudnn

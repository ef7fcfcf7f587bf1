// SPDX-License-Identifier: Apache-2.0
//
// Groups the ids of a batch by the table row that they name, on the host. A kernel can then sum the gradients of each
// row in the order of the ids, without atomic additions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace cudnn {

class row_order {
public:
  // Allocates memory for calls of sort() with a count of at most `most`.
  explicit row_order(std::size_t most) {
    keys_.reserve(most);
    sorted_.reserve(most);
  }

  // Groups ids[0 .. count); an id is the number of a row, and ids below 0 are skipped. Returns the number R of distinct
  // rows. Writes these rows, ascending, to rows[0 .. R), and the bounds of the groups to begin[0 .. R]. The ids of
  // rows[k] are ids[order[i]] for begin[k] <= i < begin[k + 1]; within a group order[i] ascends. `rows` needs space for
  // R elements, `begin` for R + 1, `order` for count. Requires count < 2^31. Allocates nothing if count is at most the
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
  // One pass of a radix sort (Knuth, The Art of Computer Programming 3, section 5.2.5): sorts keys_ by the digit that
  // begins at bit `shift`; stable.
  void sort_by_digit(unsigned shift) {
    std::array<std::size_t, std::size_t{1} << digit> place{};
    const auto digit_of = [&](std::uint64_t key) { return key >> shift & (place.size() - 1); };
    for (const std::uint64_t key : keys_) ++place[digit_of(key)];
    std::exclusive_scan(place.begin(), place.end(), place.begin(), std::size_t{0});
    sorted_.resize(keys_.size());
    for (const std::uint64_t key : keys_) sorted_[place[digit_of(key)]++] = key;
    keys_.swap(sorted_);
  }

  static constexpr unsigned digit = 11;      // bits of a digit
  std::vector<std::uint64_t> keys_, sorted_; // row in the upper 32 bits, index into `ids` in the lower 32 bits
};

} // namespace cudnn

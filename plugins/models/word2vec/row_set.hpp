// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace word2vec_parts {

// A set of table rows, one bit each, that numbers its members from 0 in ascending order. It orders thousands of rows
// within microseconds, where sorting takes hundreds of microseconds; finish() reads the bits of the whole table. Order
// of calls: clear(), insert() for all members, finish(), then rows() and index_of(). Not thread-safe.
class row_set {
public:
  // Members must be below `rows`.
  explicit row_set(std::uint64_t rows) : bits_((rows + 63) / 64), before_(bits_.size()) {}

  // Removes the members that the last finish() returned.
  void clear() {
    for (const std::uint64_t r : rows_) bits_[r / 64] = 0;
    rows_.clear();
  }
  void insert(std::uint64_t row) { bits_[row / 64] |= std::uint64_t{1} << row % 64; }
  // Numbers the members and returns them in ascending order; the list is valid until clear(). Call it once after the
  // last insert().
  const std::vector<std::uint64_t>& finish() {
    for (std::size_t i = 0; i < bits_.size(); ++i) {
      before_[i] = static_cast<std::uint32_t>(rows_.size());
      for (std::uint64_t b = bits_[i]; b; b &= b - 1)
        rows_.push_back(i * 64 + static_cast<std::uint64_t>(std::countr_zero(b)));
    }
    return rows_;
  }
  // Returns what finish() returned; empty before it.
  const std::vector<std::uint64_t>& rows() const { return rows_; }
  // Returns the number of a member, its index in rows(). Requires finish() and that `row` is a member.
  std::uint32_t index_of(std::uint64_t row) const {
    const std::uint64_t below = (std::uint64_t{1} << row % 64) - 1;
    return before_[row / 64] + static_cast<std::uint32_t>(std::popcount(bits_[row / 64] & below));
  }

private:
  std::vector<std::uint64_t> bits_;
  std::vector<std::uint32_t> before_; // members below 64 i
  std::vector<std::uint64_t> rows_;
};

} // namespace word2vec_parts

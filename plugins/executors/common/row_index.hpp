// SPDX-License-Identifier: Apache-2.0
//
// A set of a table's rows. It collects the rows that a batch touches, without duplicates and in ascending order, and
// finds the position of a row among those of a step. The set is a bitmap with a count before each word, and above it a
// bitmap of the words in use; so operations take time in proportion to the batch, and clear() and list() one test per 4096
// rows of the table. Memory: a quarter of a byte per row of the table. Only the constructor allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace executors {

// 64 rows of the table: which of them are in the set, and how many rows of the set precede them. Device kernels read
// it, too.
struct row_word {
  std::uint64_t bits;
  std::uint64_t before;
};

class row_index {
public:
  explicit row_index(std::uint64_t rows); // rows of the table
  void clear();
  void insert(std::uint64_t row);
  // Writes the set to `out` in ascending order. Requires that the capacity of `out` suffices.
  void list(std::vector<std::uint64_t>& out) const;
  // Makes these rows the set. Returns false if they do not ascend or are outside of the table; the set is then
  // undefined.
  bool assign(std::span<const std::uint64_t> rows);
  // Word i covers the rows 64 i to 64 i + 63. The position of a row in the set is `before` of its word plus the number
  // of lower bits that are set in that word.
  const row_word* words() const { return words_.data(); }

private:
  std::uint64_t rows_;
  std::vector<row_word> words_;
  std::vector<std::uint64_t> used_; // one bit per word
};

} // namespace executors

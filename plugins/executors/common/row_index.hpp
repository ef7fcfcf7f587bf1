// SPDX-License-Identifier: Apache-2.0
//
// A set of a table's rows. It collects the rows that a batch touches, without duplicates and in ascending order, and
// finds the position of a row among those of a step. The set is a bitmap with a count before each word, and above it a
// bitmap of the words in use. So operations take time in proportion to the batch; clear(), list() and assign() also
// make one test per 4096 rows of the table. Memory: a quarter of a byte per row of the table. Only the constructor
// allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace executors {

// 64 rows of the table: bit i of `bits` says whether row i of them is in the set; `before` is the number of rows of the
// set below them. Executors' kernels read it directly.
struct row_word {
  std::uint64_t bits;
  std::uint64_t before;
};

class row_index {
public:
  // Makes an empty set of rows below `rows`, the number of rows of the table.
  explicit row_index(std::uint64_t rows);
  // Empties the set.
  void clear();
  // Adds a row, which may be in the set already. Requires row < rows. Does not maintain row_word::before.
  void insert(std::uint64_t row);
  // Replaces `out` by the set in ascending order. Allocates only if the capacity of `out` does not suffice.
  void list(std::vector<std::uint64_t>& out) const;
  // Makes these rows the set. Returns false if they do not strictly ascend or are outside of the table; the set is then
  // unspecified.
  bool assign(std::span<const std::uint64_t> rows);
  // Word i covers the rows 64 i to 64 i + 63. After assign(), the position of a row in the set is `before` of its word
  // plus the number of lower bits that are set in that word; after insert(), and in words without bits, `before` is
  // meaningless. The pointer is valid as long as this object.
  const row_word* words() const { return words_.data(); }

private:
  std::uint64_t rows_;
  std::vector<row_word> words_;
  std::vector<std::uint64_t> used_; // one bit per word
};

} // namespace executors

// SPDX-License-Identifier: Apache-2.0
//
// A set of a table's rows: collects the rows that a batch touches, each once and ascending, and tells where a row
// stands among those of a step. A bitmap with a count before each word, and a bitmap of the words in use above it, so
// that both cost what the batch holds, not what the table does. A quarter of a byte a row of the table; nothing is
// allocated but by the constructor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace executors {

// 64 rows of the table: which are in the set, and how many lie before them. Kernels read it, too.
struct row_word {
  std::uint64_t bits;
  std::uint64_t before;
};

class row_index {
public:
  explicit row_index(std::uint64_t rows); // of the table
  void clear();
  void insert(std::uint64_t row);
  // The set, ascending, into `out`, whose capacity suffices.
  void list(std::vector<std::uint64_t>& out) const;
  // Makes these rows the set. They ascend and are rows of the table, or nothing is promised but false.
  bool assign(std::span<const std::uint64_t> rows);
  // By number of the row / 64. Where a row in the set stands: the count before its word and of the bits below its own.
  const row_word* words() const { return words_.data(); }

private:
  std::uint64_t rows_;
  std::vector<row_word> words_;
  std::vector<std::uint64_t> used_; // a bit for each word
};

} // namespace executors

// SPDX-License-Identifier: Apache-2.0
#include "row_index.hpp"

#include <bit>

namespace executors {
namespace {

// Calls f(first + b) for every bit b that is set.
template <class F> void each_bit(std::uint64_t bits, std::uint64_t first, const F& f) {
  for (; bits; bits &= bits - 1) f(first + static_cast<std::uint64_t>(std::countr_zero(bits)));
}

} // namespace

row_index::row_index(std::uint64_t rows) : rows_(rows), words_((rows + 63) / 64), used_((words_.size() + 63) / 64) {}

void row_index::clear() {
  for (std::size_t u = 0; u < used_.size(); ++u) {
    each_bit(used_[u], u * 64, [&](std::uint64_t word) { words_[word].bits = 0; });
    used_[u] = 0;
  }
}

void row_index::insert(std::uint64_t row) {
  const std::uint64_t word = row / 64;
  words_[word].bits |= std::uint64_t{1} << row % 64;
  used_[word / 64] |= std::uint64_t{1} << word % 64;
}

void row_index::list(std::vector<std::uint64_t>& out) const {
  out.clear();
  for (std::size_t u = 0; u < used_.size(); ++u)
    each_bit(used_[u], u * 64, [&](std::uint64_t word) {
      each_bit(words_[word].bits, word * 64, [&](std::uint64_t row) { out.push_back(row); });
    });
}

bool row_index::assign(std::span<const std::uint64_t> rows) {
  clear();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] >= rows_ || (i > 0 && rows[i] <= rows[i - 1])) return false;
    row_word& word = words_[rows[i] / 64];
    if (!word.bits) word.before = i;
    insert(rows[i]);
  }
  return true;
}

} // namespace executors

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../common/row_index.hpp"

#include <cstddef>
#include <cstdint>

namespace onednn {

using executors::row_word;

// Stands for an id without a row: padding, or not in the window.
inline constexpr std::uint32_t no_row = ~std::uint32_t{0};

struct embedding_kernels {
  // at[i] = position of row ids[i] among the rows of the index, or no_row if it is not one of them. `index` is
  // row_index::words() after assign(). Requires ids of at least 0 and below the table's number of rows.
  void (*find)(const row_word* index, const std::int32_t* ids, std::size_t count, std::uint32_t* at);
  // out[i] = table[at[i]], or zeros for no_row. Rows have `dim` elements and are contiguous.
  void (*gather)(const float* table, std::size_t dim, const std::uint32_t* at, std::size_t count, float* out);
  // out = the sum of table[at[i]] over i < count, in order; no_row counts as zeros. `out` has `dim` elements.
  void (*gather_sum)(const float* table, std::size_t dim, const std::uint32_t* at, std::size_t count, float* out);
  // Adds the `dim` elements at in + i * stride to row table[at[i]], in order, for every i < count with first <= at[i] <
  // last.
  void (*scatter_add)(float* table, std::size_t dim, const std::uint32_t* at, std::size_t count, const float* in,
                      std::size_t stride, std::uint32_t first, std::uint32_t last);
};

} // namespace onednn

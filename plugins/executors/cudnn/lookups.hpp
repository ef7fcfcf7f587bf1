// SPDX-License-Identifier: Apache-2.0
//
// Kernels for tables and the rows that ids name. What is said in maps.hpp holds.
#pragma once

#include "numbers.hpp"

#include <cuda_runtime_api.h>

namespace cudnn::kernels {

// y[i] = scale * table[ids[i]], plus element i % period of each addend that is not null: what belongs to the places of a
// sequence. Rows of `size` elements; an id below 0 names nothing: zeros.
struct gathering {
  const float* table;
  const std::int32_t* ids;
  std::uint32_t size;
  float scale;
  const float *first, *second; // [period, size]
  std::uint32_t period;
};
void gather(cudaStream_t s, number t, const gathering& g, void* y, std::size_t count);
// y[r] = the sum of the rows that `each` ids of sample r name, in their order.
void gather_sums(cudaStream_t s, number t, const gathering& g, std::uint32_t each, void* y, std::size_t samples);

// Which ids name which row: rows[k] is named by the ids number order[begin[k]] to order[begin[k + 1] - 1], ascending, for
// k < *count. All in the device's memory; see row_order.hpp.
struct naming {
  const std::int32_t *count, *rows, *begin, *order;
  std::size_t most; // that *count can be
};
// gradient[rows[k]] += scale * the sum of dy[id / each] over the ids that name it, in their order.
void scatter(cudaStream_t s, number t, const naming& n, const void* dy, std::uint32_t each, std::uint32_t size,
             float scale, float* gradient);

} // namespace cudnn::kernels

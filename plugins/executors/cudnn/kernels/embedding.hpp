// SPDX-License-Identifier: Apache-2.0
//
// Kernels for lookups in tables. Kernels are enqueued in stream `s`, and the call returns at once. Pointers are to
// memory that the device can access; void pointers are to elements of type `t`. Inputs and outputs must not overlap.
// Sizes and ids are not checked, and a kernel handles less than 2^32 elements. device::check_launch() reports errors of
// a launch.
#pragma once

#include "kernels/dtype.hpp"

#include <cuda_runtime_api.h>

namespace cudnn::kernels {

// y[i] = scale * table[ids[i]] + first[i % period] + second[i % period], rows of `size` elements; y, of type t, is
// overwritten. first and second may be null; they are embeddings of positions. An id below 0 is padding: its table row
// counts as zeros. Other ids must be rows of the table. period must not be 0.
struct gather_args {
  const float* table;
  const std::int32_t* ids;
  std::uint32_t size;
  float scale;
  const float *first, *second; // [period, size]
  std::uint32_t period;
};
// For i < count.
void gather(cudaStream_t s, dtype t, const gather_args& g, void* y, std::size_t count);
// y[i] = the sum of the table rows of the `each` ids of sample i, in the order of the ids; y, of type t, is
// overwritten. Ignores g.scale, g.first, g.second and g.period.
void gather_sums(cudaStream_t s, dtype t, const gather_args& g, std::uint32_t each, void* y, std::size_t samples);

// The ids of a batch sorted by row (ops/row_order.hpp), in device memory. For k < *count, rows[k] is named by the ids
// at indices order[begin[k]] to order[begin[k + 1] - 1], ascending; so begin has *count + 1 entries.
struct row_groups {
  const std::int32_t *count, *rows, *begin, *order;
  std::size_t most; // upper bound of *count
};
// gradient[rows[k]] += scale * the sum of dy[index / each] over the indices of the ids that name the row, in their
// order; rows of `size` elements. `each`: ids for one row of dy, of type t; 1 after gather(). Rows without an id are
// not written.
void scatter(cudaStream_t s, dtype t, const row_groups& n, const void* dy, std::uint32_t each, std::uint32_t size,
             float scale, float* gradient);

} // namespace cudnn::kernels

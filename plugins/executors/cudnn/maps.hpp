// SPDX-License-Identifier: Apache-2.0
//
// Our own kernels, what neither cuDNN nor cuBLAS has, or has otherwise than regatta/layers.hpp says: those that go
// element by element. All kernels are in the stream's order and return at once; pointers are the device's; `t` is the
// type behind pointers to void. Where `add` is said, the result is added to what is there, else it overwrites it. Sums do
// not depend on timing. A launch that fails is seen by device::check_launch().
#pragma once

#include "elements.hpp"

#include <optional>

#include <cuda_runtime_api.h>

namespace cudnn::kernels {

// y = f(x); dx = dy f'(x), where y is f(x).
void map(cudaStream_t s, number t, function f, const void* x, void* y, std::size_t n);
void map_gradient(cudaStream_t s, number t, function f, const void* x, const void* y, const void* dy, void* dx,
                  std::size_t n, bool add);
// y = a + b
void sum(cudaStream_t s, number t, const void* a, const void* b, void* y, std::size_t n);
// y = x or y += x
void copy(cudaStream_t s, number t, const void* x, void* y, std::size_t n, bool add);
// Of type `from` to type `to`.
void convert(cudaStream_t s, number from, const void* x, number to, void* y, std::size_t n);
// The same, between two ways to lie.
void relayout(cudaStream_t s, number from, const picture& p, const void* x, number to, const picture& q, void* y,
              std::size_t samples, bool add);
// Part of every row: y[r, y_first + i] = x[r, x_first + i] for i < width.
struct columns {
  std::uint32_t x_width, x_first, y_width, y_first, width;
};
void copy_columns(cudaStream_t s, number t, const columns& c, const void* x, void* y, std::size_t rows, bool add);
// y = f(y + bias of its channel); `before`, where it is not null, is what f was of.
struct finishing {
  const float* bias; // null: none
  std::optional<function> f;
  picture lies;
};
void finish(cudaStream_t s, number t, const finishing& f, void* y, void* before, std::size_t samples);

// What a step draws: the seed of step and layer, and the number of its first sample in the global batch, both in the
// device's memory.
struct dropping {
  const std::uint64_t *seed, *first;
  std::uint32_t threshold; // round(p * 65536)
  float scale;             // 1 / (1 - p)
};
// Forward: y of x; backward: dx of dy.
void dropout(cudaStream_t s, number t, const dropping& d, const picture& p, const void* x, void* y, std::size_t samples,
             bool add);

// `samples` samples of values as rg_made (regatta/abi.h) says, the first of them number `first` of the step's.
struct making {
  std::uint32_t kind; // RG_MADE_*
  std::uint64_t seed, first;
  const float* table; // on the device
  std::uint32_t elements;
};
void make_values(cudaStream_t s, const making& m, float* out, std::size_t samples);

// A step's gradient: out = scaled * *factor, or added to it. *not_finite becomes 1 where one is not.
void unscale(cudaStream_t s, const float* scaled, const float* factor, float* out, std::size_t n, bool add,
             std::uint32_t* not_finite);

} // namespace cudnn::kernels

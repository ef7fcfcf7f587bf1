// SPDX-License-Identifier: Apache-2.0
//
// Our own elementwise kernels, for ops that cuDNN and cuBLAS lack or define differently from regatta/layers.hpp. The
// conventions of all kernels: they are enqueued in the stream and the call returns at once; pointers are to device
// memory; `t` is the element type behind void pointers. With `add` the result is added to the output, else it
// overwrites it. Sums do not depend on timing. Launch errors are reported by device::check_launch().
#pragma once

#include "elements.hpp"

#include <optional>

#include <cuda_runtime_api.h>

namespace cudnn::kernels {

// y = f(x); dx = dy f'(x), with y = f(x)
void map(cudaStream_t s, number t, function f, const void* x, void* y, std::size_t n);
void map_gradient(cudaStream_t s, number t, function f, const void* x, const void* y, const void* dy, void* dx,
                  std::size_t n, bool add);
// y = a + b
void sum(cudaStream_t s, number t, const void* a, const void* b, void* y, std::size_t n);
// y = x or y += x
void copy(cudaStream_t s, number t, const void* x, void* y, std::size_t n, bool add);
// Converts from type `from` to type `to`.
void convert(cudaStream_t s, number from, const void* x, number to, void* y, std::size_t n);
// Converts type and layout: y in layout q from x in layout p.
void relayout(cudaStream_t s, number from, const picture& p, const void* x, number to, const picture& q, void* y,
              std::size_t samples, bool add);
// Copies columns: y[r, y_first + i] = x[r, x_first + i] for i < width.
struct columns {
  std::uint32_t x_width, x_first, y_width, y_first, width;
};
void copy_columns(cudaStream_t s, number t, const columns& c, const void* x, void* y, std::size_t rows, bool add);
// y = f(y + bias of its channel). `before`, if not null, receives the argument of f.
struct finishing {
  const float* bias; // null: none
  std::optional<function> f;
  picture lies;
};
void finish(cudaStream_t s, number t, const finishing& f, void* y, void* before, std::size_t samples);

// The random numbers of a dropout: the seed of the step and layer, and the number of its first sample in the global
// batch; both in device memory.
struct dropping {
  const std::uint64_t *seed, *first;
  std::uint32_t threshold; // round(p * 65536)
  float scale;             // 1 / (1 - p)
};
// Forward: y from x; backward: dx from dy.
void dropout(cudaStream_t s, number t, const dropping& d, const picture& p, const void* x, void* y, std::size_t samples,
             bool add);

// Generates `samples` samples of input as rg_made (regatta/abi.h) defines; the first one has number `first` in the
// step's global batch.
struct making {
  std::uint32_t kind; // RG_MADE_*
  std::uint64_t seed, first;
  const float* table; // on the device
  std::uint32_t elements;
};
void make_values(cudaStream_t s, const making& m, float* out, std::size_t samples);

// out = scaled * *factor, or added to it. Sets *not_finite to 1 if an element of out is not finite.
void unscale(cudaStream_t s, const float* scaled, const float* factor, float* out, std::size_t n, bool add,
             std::uint32_t* not_finite);

} // namespace cudnn::kernels

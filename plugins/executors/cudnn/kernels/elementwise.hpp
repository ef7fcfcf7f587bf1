// SPDX-License-Identifier: Apache-2.0
//
// Our own elementwise kernels, for ops that cuDNN and cuBLAS lack or define differently from regatta/layers.hpp. The
// conventions of all kernels: they are enqueued in the stream and the call returns at once; pointers are to memory that
// the device can access; `t` is the element type behind void pointers. With `add` the result is added to the output,
// else it overwrites it. Inputs and outputs must not overlap unless a comment says so. Sums do not depend on timing.
// Sizes and indices are not checked, and a kernel handles less than 2^32 elements. Launch errors are reported by
// device::check_launch().
#pragma once

#include "kernels/element_functions.hpp"

#include <optional>

#include <cuda_runtime_api.h>

namespace cudnn::kernels {

// y = f(x); dx = dy f'(x), with y = f(x). dx may be dy. For relu, tanh and sigmoid, map_gradient() takes a null x.
void map(cudaStream_t s, number t, function f, const void* x, void* y, std::size_t n);
void map_gradient(cudaStream_t s, number t, function f, const void* x, const void* y, const void* dy, void* dx,
                  std::size_t n, bool add);
// y = a + b
void sum(cudaStream_t s, number t, const void* a, const void* b, void* y, std::size_t n);
// y = x or y += x
void copy(cudaStream_t s, number t, const void* x, void* y, std::size_t n, bool add);
// y = x, converted from type `from` to type `to`.
void convert(cudaStream_t s, number from, const void* x, number to, void* y, std::size_t n);
// Converts type and layout: y in layout q and type `to` from x in layout p and type `from`. p and q must have the same
// channels and spatial size.
void relayout(cudaStream_t s, number from, const picture& p, const void* x, number to, const picture& q, void* y,
              std::size_t samples, bool add);
// Copies columns: y[r, y_first + i] = x[r, x_first + i] for r < rows and i < width. x_width, y_width: elements of a
// row.
struct columns {
  std::uint32_t x_width, x_first, y_width, y_first, width;
};
void copy_columns(cudaStream_t s, number t, const columns& c, const void* x, void* y, std::size_t rows, bool add);
// y = f(y + bias of its channel), in place. `before`, of type t, receives the argument of f; it may be null.
struct finishing {
  const float* bias;         // per channel; null: none
  std::optional<function> f; // empty: identity
  picture lies;              // layout of y
};
void finish(cudaStream_t s, number t, const finishing& f, void* y, void* before, std::size_t samples);

// The random numbers of a dropout: the seed of the step and layer, and the number of the batch's first sample in the
// global batch; both in device memory. A null seed says that there is no dropout; only the functions of rows.hpp that
// mention it accept that.
struct dropping {
  const std::uint64_t *seed, *first;
  std::uint32_t threshold; // round(p * 65536)
  float scale;             // 1 / (1 - p)
};
// y = x * scale for kept elements, 0 for the others; the backward pass computes dx from dy in the same way. p: layout
// of both. Requires d.seed.
void dropout(cudaStream_t s, number t, const dropping& d, const picture& p, const void* x, void* y, std::size_t samples,
             bool add);

// Generates `samples` samples of input as rg_made (regatta/abi/model.h) defines; the first one has number `first` in
// the step's global batch.
struct making {
  std::uint32_t kind; // RG_MADE_*
  std::uint64_t seed, first;
  const float* table;     // 65536 values; for RG_MADE_LOOKED_UP only
  std::uint32_t elements; // per sample, 4 bytes each
};
void make_values(cudaStream_t s, const making& m, float* out, std::size_t samples);

// out = scaled * *factor, or with `add` out += scaled * *factor. Sets *not_finite to 1 if one of these products is not
// finite, else leaves it.
void unscale(cudaStream_t s, const float* scaled, const float* factor, float* out, std::size_t n, bool add,
             std::uint32_t* not_finite);

} // namespace cudnn::kernels

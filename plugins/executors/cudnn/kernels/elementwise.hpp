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
void map(cudaStream_t s, dtype t, function f, const void* x, void* y, std::size_t n);
void map_gradient(cudaStream_t s, dtype t, function f, const void* x, const void* y, const void* dy, void* dx,
                  std::size_t n, bool add);
// y = a + b
void sum(cudaStream_t s, dtype t, const void* a, const void* b, void* y, std::size_t n);
// y = x or y += x
void copy(cudaStream_t s, dtype t, const void* x, void* y, std::size_t n, bool add);
// y = x, converted from type `from` to type `to`.
void convert(cudaStream_t s, dtype from, const void* x, dtype to, void* y, std::size_t n);
// Converts type and layout: y in layout q and type `to` from x in layout p and type `from`. p and q must have the same
// channels and spatial size.
void relayout(cudaStream_t s, dtype from, const image_layout& p, const void* x, dtype to, const image_layout& q,
              void* y, std::size_t samples, bool add);
// Copies columns: y[r, y_first + i] = x[r, x_first + i] for r < rows and i < width. x_width, y_width: elements of a
// row.
struct columns {
  std::uint32_t x_width, x_first, y_width, y_first, width;
};
void copy_columns(cudaStream_t s, dtype t, const columns& c, const void* x, void* y, std::size_t rows, bool add);
// y = f(y + bias of its channel), in place. `before`, of type t, receives the argument of f; it may be null.
struct epilogue_args {
  const float* bias;         // per channel; null: none
  std::optional<function> f; // empty: identity
  image_layout layout;       // layout of y
};
void epilogue(cudaStream_t s, dtype t, const epilogue_args& f, void* y, void* before, std::size_t samples);

// out = scaled * *factor, or with `add` out += scaled * *factor. Sets *not_finite to 1 if one of these products is not
// finite, else leaves it.
void unscale(cudaStream_t s, const float* scaled, const float* factor, float* out, std::size_t n, bool add,
             std::uint32_t* not_finite);

} // namespace cudnn::kernels

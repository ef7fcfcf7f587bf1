// SPDX-License-Identifier: Apache-2.0
//
// Batch norm with the ReLU, dropout, residual or 2x2 max pooling after it, and layer norm with the dropout and the
// residual before it, in as few passes over memory as possible.
//
// Images are blocked: [sample][channel block][height][width][lane]. A lane is a channel within its block. A mask of
// batch norm has one word per vector of lanes, [sample][channel block][height][width], with bit l for lane l.
#pragma once

#include "kernels/bf16.hpp"

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace onednn {

using mask_word = std::uint16_t;
inline constexpr std::size_t max_lanes = 16;

// Stages of a forward pass, in this order. norm: x * a + b per channel; residual: + r; relu; then either pool: maximum
// of 2x2 windows with stride 2, never with a residual, only for even height and width; or dropout: multiplies the
// elements that `mask` marks by `scale`, and sets the others to 0. record: afterwards sets `mask` to the elements of x
// through which gradients flow.
enum : unsigned {
  with_norm = 1,
  with_relu = 2,
  with_dropout = 4,
  with_pool = 8,
  record_mask = 16,
  with_residual = 32,
  pass_kinds = 64
};

// Operands of a pass over one channel block of some samples. Strides are elements (of a mask: words) from sample to
// sample; r, dx and dr use x_stride, dy uses y_stride. Pointers that a pass does not use may be null. In a backward
// pass without pooling `mask` may be null, too: all elements are kept; with pooling it is required. Elements are of
// type T in memory; arithmetic is fp32.
template <class T> struct batch_norm_pass {
  std::size_t samples = 0, height = 0, width = 0; // before pooling
  const T* x = nullptr;                           // [samples, height, width, lane]
  const T* r = nullptr;                           // as x
  T* y = nullptr;                                 // as x, or pooled
  const T* dy = nullptr;                          // as y
  T* dx = nullptr;                                // as x
  T* dr = nullptr;                                // as x; may be dy
  mask_word* mask = nullptr;                      // [samples, height, width]
  std::size_t x_stride = 0, y_stride = 0, mask_stride = 0;
  const float *a = nullptr, *b = nullptr, *c = nullptr; // per lane
  float scale = 1;                                      // factor of the elements that dropout keeps
};

template <class T> struct batch_norm_kernels {
  // For each lane l, adds the sum of x - a[l] over samples, height and width to sums[l], and that of its square to
  // squares[l].
  void (*moments)(const batch_norm_pass<T>&, double* sums, double* squares);
  // Computes y from x, and from r with a residual; indexed by the stage flags. y may be x without pooling.
  void (*forward[pass_kinds])(const batch_norm_pass<T>&);
  // For each lane l, adds the sum of g to sums[l] and that of g * (x - a[l]) to products[l]; g is dy where the mask is
  // set, else 0. [0]: without pooling; [1]: with pooling, dy is that of the window to which x belongs.
  void (*reduce[2])(const batch_norm_pass<T>&, double* sums, double* products);
  // As reduce[0], and stores dr = g.
  void (*reduce_residual)(const batch_norm_pass<T>&, double* sums, double* products);
  // dx = a * g + b * x + c with norm, else scale * g; g as in `reduce`. Indexed by the stage flags, of which only
  // with_norm and with_pool matter. dx may be dy without pooling.
  void (*backward[pass_kinds])(const batch_norm_pass<T>&);
};

// z = keep(x) * keep_scale + residual; y = z, or the layer norm of z over each row of `size` elements. Rows are
// contiguous. A null mask means z = x + residual, a null residual adds nothing. The mask has one bit per element, and 8
// readable bytes must follow it (kernels/dropout.hpp). Without `scale` there is no layer norm, and bias, normal and
// inverse are not used. y may be x.
struct layer_norm_pass {
  std::size_t rows = 0, size = 0;
  const std::uint8_t* mask = nullptr;
  std::size_t first_bit = 0; // the mask's bit for the first element of row 0
  float keep_scale = 1;
  const float *x = nullptr, *residual = nullptr;
  const float *scale = nullptr, *bias = nullptr;
  float epsilon = 0;
  float *y = nullptr, *normal = nullptr; // normal: (z - mean) / deviation, for the backward pass
  float* inverse = nullptr;              // [rows]: 1 / deviation
};

// The backward pass of layer_norm_pass, with its mask, scale, normal and inverse: computes dz from dy, and adds to
// dscale and dbias if there is a layer norm. Stores dx = keep(dz) * keep_scale and dresidual = dz. One of the two may
// be dy; either is null if it is not wanted.
struct layer_norm_gradient_pass {
  std::size_t rows = 0, size = 0;
  const std::uint8_t* mask = nullptr;
  std::size_t first_bit = 0;
  float keep_scale = 1;
  const float *dy = nullptr, *scale = nullptr, *normal = nullptr, *inverse = nullptr;
  float *dx = nullptr, *dresidual = nullptr, *dscale = nullptr, *dbias = nullptr;
};

struct normalization_kernels {
  batch_norm_kernels<float> float_batch_norm;
  batch_norm_kernels<bf16> half_batch_norm;
  template <class T> const batch_norm_kernels<T>& batch_norm() const {
    if constexpr (std::is_same_v<T, float>)
      return float_batch_norm;
    else
      return half_batch_norm;
  }
  void (*layer_norm)(const layer_norm_pass&);
  void (*layer_norm_gradient)(const layer_norm_gradient_pass&);
};

} // namespace onednn

// SPDX-License-Identifier: Apache-2.0
//
// Kernels for rows: the features of a position, the keys of a query, the logits of a vocabulary. sequence_kernels.inl
// is compiled once per instruction set, as kernels.inl is.
//
// A dropout mask has one bit per element of a sample: bit e % 8 of byte e / 8 for element e; 1: the element is kept. 8
// readable bytes must follow the mask, because kernels load whole words; mask_bytes() of rows.hpp includes them.
#pragma once

#include "kernels/bf16.hpp"

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace onednn {

// Elementwise functions; `none` is the identity.
enum class row_function { none, relu, gelu, tanh };
inline constexpr std::size_t row_functions = 4;

// y = f(x) for `count` elements; y may be x. T is the type of elements in memory, float or bf16, here and below;
// arithmetic is fp32.
template <class T> struct map_pass {
  std::size_t count = 0;
  const T* x = nullptr;
  T* y = nullptr;
};

// dx = dy * f'(x) for `rows` rows of `columns` elements; in all arrays rows are `stride` elements apart. Adds dx to
// sums[column] unless `sums` is null. Only gelu reads x, only relu and tanh read y: the other one may be null. dx may
// be dy.
template <class T> struct map_gradient_pass {
  std::size_t rows = 0, columns = 0, stride = 0;
  const T *x = nullptr, *y = nullptr, *dy = nullptr;
  T* dx = nullptr;
  float* sums = nullptr;
};

// Indexed by row_function.
template <class T> struct map_kernels {
  void (*forward[row_functions])(const map_pass<T>&);
  void (*gradient[row_functions])(const map_gradient_pass<T>&);
};

// z = keep(x) * keep_scale + residual; y = z, or the layer norm of z over each row of `size` elements. Rows are
// contiguous. A null mask means z = x + residual, a null residual adds nothing. Without `scale` there is no layer norm,
// and bias, normal and inverse are not used. y may be x.
struct stage_pass {
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

// The backward pass of stage_pass, with its mask, scale, normal and inverse: computes dz from dy, and adds to dscale
// and dbias if there is a layer norm. Stores dx = keep(dz) * keep_scale and dresidual = dz. dx may be dy; dx or
// dresidual is null if it is not wanted.
struct stage_gradient_pass {
  std::size_t rows = 0, size = 0;
  const std::uint8_t* mask = nullptr;
  std::size_t first_bit = 0;
  float keep_scale = 1;
  const float *dy = nullptr, *scale = nullptr, *normal = nullptr, *inverse = nullptr;
  float *dx = nullptr, *dresidual = nullptr, *dscale = nullptr, *dbias = nullptr;
};

struct softmax_sums {
  double most, sum, plain; // the maximum, the sum of exp(x - most), the sum of x
};

struct sequence_kernels {
  map_kernels<float> map_floats;
  map_kernels<bf16> map_halves;
  void (*stage)(const stage_pass&);
  void (*stage_gradient)(const stage_gradient_pass&);
  // In place: p[i] = softmax(scale * p)[i], taken over all i < size with seen[i] > 0. Other p[i] become 0; all do if no
  // i has seen[i] > 0.
  void (*softmax)(float* p, const float* seen, std::size_t size, float scale);
  // Turns the gradient d of a softmax's result p into that of its argument, in place: d[i] = scale * p[i] * (d[i] - sum
  // over j of d[j] p[j]).
  void (*softmax_gradient)(float* d, const float* p, std::size_t size, float scale);
  // Returns the sums over one row of `size` logits, at least 1, from which softmax and loss are computed.
  softmax_sums (*logits)(const float* x, std::size_t size);
  // g[i] = share * (exp(x[i] - shift) - less). With shift = log(sum of exp(x)), the first term is the softmax of x. g
  // may be x.
  void (*logits_gradient)(const float* x, float* g, std::size_t size, float shift, float share, float less);
  // y[i] = scale * x[i] where bit first_bit + i of the mask is set, else 0; y may be x.
  void (*drop)(const std::uint8_t* mask, std::size_t first_bit, const float* x, float* y, std::size_t size,
               float scale);
  // Draws `count` bytes of a sample's mask, for elements 8 first .. 8 (first + count) - 1, as regatta/layers.hpp
  // defines them, and writes them from mask[0] on. `seed` is that of step and layer, `sample` the number in the global
  // batch. An element is kept if its 16 random bits are at least `threshold`.
  void (*draw)(std::uint8_t* mask, std::size_t first, std::size_t count, std::uint64_t seed, std::uint64_t sample,
               std::uint32_t threshold);
  // y += a x.
  void (*axpy)(float* y, float a, const float* x, std::size_t size);

  template <class T> const map_kernels<T>& maps() const {
    if constexpr (std::is_same_v<T, float>)
      return map_floats;
    else
      return map_halves;
  }
};

} // namespace onednn

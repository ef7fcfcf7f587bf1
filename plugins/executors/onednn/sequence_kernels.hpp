// SPDX-License-Identifier: Apache-2.0
//
// Kernels for rows: the features of a position, the keys of a query, the logits of a vocabulary. sequence_kernels.inl
// is compiled once per instruction set, as kernels.inl is.
//
// A dropout mask has one bit per element of a sample: bit e % 8 of byte e / 8 for element e. 8 readable bytes must
// follow it.
#pragma once

#include "bf16.hpp"

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace onednn {

enum class row_function { none, relu, gelu, tanh };
inline constexpr std::size_t row_functions = 4;

// y = f(x) for `count` elements; y may be x. gelu's gradient needs x, those of relu and tanh need y only. T is the type
// of elements in memory, here and below.
template <class T> struct map_pass {
  std::size_t count = 0;
  const T* x = nullptr;
  T* y = nullptr;
};

// dx = dy * f'(x) for `rows` rows of `columns`, `stride` elements apart. Adds dx to sums[column] unless sums is null.
// gelu reads x; relu and tanh read y. dx may be dy.
template <class T> struct map_gradient_pass {
  std::size_t rows = 0, columns = 0, stride = 0;
  const T *x = nullptr, *y = nullptr, *dy = nullptr;
  T* dx = nullptr;
  float* sums = nullptr;
};

template <class T> struct map_kernels {
  void (*forward[row_functions])(const map_pass<T>&);
  void (*gradient[row_functions])(const map_gradient_pass<T>&);
};

// z = keep(x) * keep_scale + residual; y = z, or its layer norm. Mask, residual and norm (scale, bias) may be null.
struct stage_pass {
  std::size_t rows = 0, size = 0;
  const std::uint8_t* mask = nullptr;
  std::size_t first_bit = 0; // of row 0
  float keep_scale = 1;
  const float *x = nullptr, *residual = nullptr;
  const float *scale = nullptr, *bias = nullptr;
  float epsilon = 0;
  float *y = nullptr, *normal = nullptr; // normal: (z - mean) / deviation, for the backward pass
  float* inverse = nullptr;              // [rows]: 1 / deviation
};

// The backward pass: dz from dy, through the layer norm if there is one (which adds to dscale and dbias);
// dx = keep(dz) * keep_scale; dresidual = dz. dx may be dy; dx and dresidual may be null.
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
  // p[i] = softmax(scale * p) over all i < size with seen[i] > 0; 0 elsewhere, and everywhere if no i is seen.
  void (*softmax)(float* p, const float* seen, std::size_t size, float scale);
  // d[i] = scale * p[i] * (d[i] - sum over j of d[j] p[j]).
  void (*softmax_gradient)(float* d, const float* p, std::size_t size, float scale);
  // The sums over one row of logits from which softmax and loss are computed.
  softmax_sums (*logits)(const float* x, std::size_t size);
  // g[i] = share * (exp(x[i] - shift) - less). g may be x.
  void (*logits_gradient)(const float* x, float* g, std::size_t size, float shift, float share, float less);
  // y = scale * x where the mask's bit is set, else 0; x may be y.
  void (*drop)(const std::uint8_t* mask, std::size_t first_bit, const float* x, float* y, std::size_t size,
               float scale);
  // Draws the mask of elements 8 first .. 8 (first + count) of one sample, as regatta/layers.hpp defines it. `seed` is
  // that of step and layer.
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

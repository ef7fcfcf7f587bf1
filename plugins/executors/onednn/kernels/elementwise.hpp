// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/bf16.hpp"

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace onednn {

// Elementwise functions; `none` is the identity.
enum class elementwise_function { none, relu, gelu, tanh };
inline constexpr std::size_t elementwise_functions = 4;

// y = f(x) for `count` elements; y may be x. T is the type of elements in memory, float or bf16, here and below;
// arithmetic is fp32.
template <class T> struct map_pass {
  std::size_t count = 0;
  const T* x = nullptr;
  T* y = nullptr;
};

// dx = dy * f'(x) for `rows` rows of `columns` elements; in all arrays rows are `stride` elements apart. Adds dx,
// before it is rounded to T, to sums[column] unless `sums` is null. Only gelu reads x, only relu and tanh read y: the
// other one may be null. dx may be dy.
template <class T> struct map_gradient_pass {
  std::size_t rows = 0, columns = 0, stride = 0;
  const T *x = nullptr, *y = nullptr, *dy = nullptr;
  T* dx = nullptr;
  float* sums = nullptr;
};

// Indexed by elementwise_function.
template <class T> struct map_kernels {
  void (*forward[elementwise_functions])(const map_pass<T>&);
  void (*gradient[elementwise_functions])(const map_gradient_pass<T>&);
};

struct elementwise_kernels {
  map_kernels<float> float_maps;
  map_kernels<bf16> half_maps;
  template <class T> const map_kernels<T>& maps() const {
    if constexpr (std::is_same_v<T, float>)
      return float_maps;
    else
      return half_maps;
  }
  // y += x. add_halves() rounds `count` up to a multiple of kernel_table::lanes; x and y must have that many elements.
  void (*add)(float* y, const float* x, std::size_t count);
  void (*add_halves)(bf16* y, const bf16* x, std::size_t count);
  void (*widen)(float* y, const bf16* x, std::size_t count);  // y = x, exact
  void (*narrow)(bf16* y, const float* x, std::size_t count); // y = x, rounded to nearest even
  // y += a x.
  void (*axpy)(float* y, float a, const float* x, std::size_t size);
  // y = p a + q b, over `count` elements.
  void (*combine)(float p, const float* a, float q, const float* b, float* y, std::size_t count);
  // out = {a . b, a . a, b . b}, over `count` elements.
  void (*dot_products)(const float* a, const float* b, std::size_t count, float out[3]);
  // y = x / (1 + |x|), and dx = dy / (1 + |x|)^2.
  void (*softsign)(const float* x, float* y, std::size_t count);
  void (*softsign_backward)(const float* x, const float* dy, float* dx, std::size_t count);
};

} // namespace onednn

// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of kernels for one element, as functions that also run on the host, where tests check them. The ops
// are defined in regatta/layers.hpp.
#pragma once

#include "kernels/dtype.hpp"

#include <regatta/random.hpp>

namespace cudnn {

// Elementwise functions; gelu is the exact one (erf), not the approximation by tanh.
enum class function : std::uint8_t { relu, gelu, tanh, sigmoid, softsign };

template <function F> REGATTA_EVERYWHERE inline float value_of(float x) {
  if constexpr (F == function::relu) return x < 0 ? 0 : x; // NaN stays NaN
  if constexpr (F == function::gelu) return 0.5F * x * erfcf(-0.70710678F * x);
  if constexpr (F == function::tanh) return tanhf(x);
  if constexpr (F == function::sigmoid) return 1 / (1 + expf(-x));
  if constexpr (F == function::softsign) return x / (1 + fabsf(x));
}
// Returns the derivative at x; y is the function's value at x. relu, tanh and sigmoid use y only, gelu and softsign x
// only.
template <function F> REGATTA_EVERYWHERE inline float derivative_of(float x, float y) {
  if constexpr (F == function::relu) return y > 0 ? 1.0F : 0.0F;
  if constexpr (F == function::gelu) return 0.5F * erfcf(-0.70710678F * x) + x * 0.39894228F * expf(-0.5F * x * x);
  if constexpr (F == function::tanh) return 1 - y * y;
  if constexpr (F == function::sigmoid) return y * (1 - y);
  if constexpr (F == function::softsign) return 1 / ((1 + fabsf(x)) * (1 + fabsf(x)));
}

// The layout of a sample with channels: NCHW, or with `channels_last` NHWC. `spatial` is height times width; the
// elements of a channel are numbered y * width + x. By default a single element.
struct image_layout {
  std::uint32_t channels = 1, spatial = 1;
  bool channels_last = false;
  std::size_t elements() const { return std::size_t{channels} * spatial; }
};
struct element_position {
  std::uint32_t sample, channel, position; // position: number of the element in its channel
};
// position_of() returns where element i of a batch in layout p is; offset_of() is its inverse.
REGATTA_EVERYWHERE inline element_position position_of(const image_layout& p, std::uint32_t i) {
  const std::uint32_t size = p.channels * p.spatial, in = i % size;
  if (p.channels_last) return {i / size, in % p.channels, in / p.channels};
  return {i / size, in / p.spatial, in % p.spatial};
}
REGATTA_EVERYWHERE inline std::uint32_t offset_of(const image_layout& p, const element_position& at) {
  const std::uint32_t in =
      p.channels_last ? at.position * p.channels + at.channel : at.channel * p.spatial + at.position;
  return at.sample * p.channels * p.spatial + in;
}

// Returns the index of the first element of a channel of a sample.
REGATTA_EVERYWHERE inline std::uint32_t start_of(const image_layout& p, const element_position& at) {
  return at.sample * p.channels * p.spatial + (p.channels_last ? at.channel : at.channel * p.spatial);
}

// Returns the random bits that decide on an element. `seed`: of the step and layer. `sample`: its number in the global
// batch. `element`: its number in the sample in canonical layout; elements 8 k to 8 k + 7 share a block of bits.
REGATTA_EVERYWHERE inline rg::bits4 dropout_bits(std::uint64_t seed, std::uint64_t sample, std::uint64_t element) {
  return rg::random_bits(seed, sample, static_cast<std::uint32_t>(element / 8));
}
// Returns whether dropout keeps an element. `bits`: its dropout_bits(). `threshold`: round(p * 65536).
REGATTA_EVERYWHERE inline bool keeps(const rg::bits4& bits, std::uint64_t element, std::uint32_t threshold) {
  const std::uint32_t word = bits[element % 8 / 2];
  return (element % 2 ? word >> 16 : word & 0xffff) >= threshold;
}
REGATTA_EVERYWHERE inline bool keeps(std::uint64_t seed, std::uint64_t sample, std::uint64_t element,
                                     std::uint32_t threshold) {
  return keeps(dropout_bits(seed, sample, element), element, threshold);
}

} // namespace cudnn

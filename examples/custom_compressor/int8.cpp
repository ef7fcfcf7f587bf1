// SPDX-License-Identifier: Apache-2.0
//
// A compressor: a scale and 8 bits for each element. rg::compressor makes a strategy of it, with error feedback.
#include <regatta/compressor.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>

struct int8 {
  // An element's rounding error is at most half of the scale max|x| / 127, and never larger than the element; the
  // largest one has none. So ||x - D(C(x))||^2 is at most n max|x|^2 / 254^2, and at most ||x||^2 - max|x|^2.
  static constexpr auto promise = rg::compression::contraction;
  double delta(std::uint64_t n) {
    const auto elements = static_cast<double>(n);
    return std::max(1 - elements / (254 * 254), 1 / elements);
  }

  std::uint64_t bytes(std::uint64_t n) { return sizeof(float) + n; }

  void compress(std::span<const float> x, std::span<std::byte> message) {
    float largest = 0;
    for (const float v : x) largest = std::max(largest, std::abs(v));
    const float scale = largest / 127;
    std::memcpy(message.data(), &scale, sizeof scale);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float q = scale > 0 ? std::round(x[i] / scale) : 0.0F;
      message[sizeof scale + i] = static_cast<std::byte>(static_cast<std::int8_t>(q));
    }
  }

  void decompress(std::span<const std::byte> message, std::span<float> y) {
    float scale = 0;
    std::memcpy(&scale, message.data(), sizeof scale);
    for (std::size_t i = 0; i < y.size(); ++i)
      y[i] = scale * static_cast<float>(static_cast<std::int8_t>(message[sizeof scale + i]));
  }
};

RG_PLUGIN("custom_compressor", "1.0", rg::compressor<int8>("int8", "example: gradients of 8 bits with error feedback"))

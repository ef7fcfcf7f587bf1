// SPDX-License-Identifier: Apache-2.0
//
// Compressors for tests: one that is unbiased, one that is a contraction with a residual of its own, and one whose
// messages can be added. The files broken/compressor_*.cpp spoil one function each.
#pragma once

#include <regatta/compressor.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace test {

template <class T> T load(std::span<const std::byte> m, std::size_t i) {
  T v{};
  std::memcpy(&v, m.data() + i * sizeof v, sizeof v);
  return v;
}
template <class T> void store(std::span<std::byte> m, std::size_t i, T v) {
  std::memcpy(m.data() + i * sizeof v, &v, sizeof v);
}

// QSGD with 127 levels of the norm (Alistarh, Grubic, Li, Tomioka and Vojnovic, QSGD: Communication-efficient SGD via
// gradient quantization and encoding, 2017, section 3.1), a byte for each element.
struct qsgd {
  static constexpr auto promise = rg::compression::unbiased;
  static constexpr float levels = 127;

  std::uint64_t bytes(std::uint64_t n) { return sizeof(float) + n; }
  void compress(std::span<const float> x, std::span<std::byte> message, std::uint64_t seed) {
    quantise(x, message, [seed](std::size_t i) { return rg::random_uniforms(seed, i)[0]; });
  }
  void decompress(std::span<const std::byte> message, std::span<float> y) {
    const auto norm = load<float>(message, 0);
    for (std::size_t i = 0; i < y.size(); ++i)
      y[i] = norm / levels * static_cast<float>(static_cast<std::int8_t>(message[sizeof norm + i]));
  }

protected:
  template <class F> static void quantise(std::span<const float> x, std::span<std::byte> message, F&& uniform) {
    const auto norm = static_cast<float>(std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0)));
    store(message, 0, norm);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float level = norm > 0 ? std::min(std::floor(std::abs(x[i]) / norm * levels + uniform(i)), levels) : 0;
      message[sizeof norm + i] = static_cast<std::byte>(static_cast<std::int8_t>(std::copysign(level, x[i])));
    }
  }
};

// A tenth of the elements, the largest: pairs of an index and a value.
struct top_k {
  static constexpr auto promise = rg::compression::contraction;

  static std::uint64_t kept(std::uint64_t n) { return (n + 9) / 10; }
  double delta(std::uint64_t n) { return static_cast<double>(kept(n)) / static_cast<double>(n); }
  std::uint64_t bytes(std::uint64_t n) { return 8 * kept(n); }
  void compress(std::span<const float> x, std::span<std::byte> message) {
    const std::size_t k = kept(x.size());
    order.resize(x.size());
    std::iota(order.begin(), order.end(), 0U);
    std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k - 1), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return std::abs(x[a]) > std::abs(x[b]); });
    for (std::size_t i = 0; i < k; ++i) {
      store(message, 2 * i, order[i]);
      store(message, 2 * i + 1, x[order[i]]);
    }
  }
  void decompress(std::span<const std::byte> message, std::span<float> y) {
    std::fill(y.begin(), y.end(), 0.0F);
    for (std::size_t i = 0; i < message.size() / 8; ++i)
      y[load<std::uint32_t>(message, 2 * i)] = load<float>(message, 2 * i + 1);
  }
  void residual(std::span<const std::byte> message, std::span<float> p) { // what was sent, was sent exactly
    for (std::size_t i = 0; i < message.size() / 8; ++i) p[load<std::uint32_t>(message, 2 * i)] = 0;
  }

protected:
  std::vector<std::uint32_t> order;
};

// Half of the elements, from a random one on: its index and the values. Messages of one seed have the same elements.
struct random_block {
  static constexpr auto promise = rg::compression::contraction;

  static std::uint64_t kept(std::uint64_t n) { return (n + 1) / 2; }
  double delta(std::uint64_t n) { return static_cast<double>(kept(n)) / static_cast<double>(n); }
  std::uint64_t bytes(std::uint64_t n) { return sizeof(std::uint32_t) + sizeof(float) * kept(n); }
  void compress(std::span<const float> x, std::span<std::byte> message, std::uint64_t seed) {
    const std::uint32_t first = rg::to_index(rg::random_bits(seed, 0)[0], static_cast<std::uint32_t>(x.size()));
    store(message, 0, first);
    for (std::size_t i = 0; i < kept(x.size()); ++i) store(message, 1 + i, x[(first + i) % x.size()]);
  }
  void decompress(std::span<const std::byte> message, std::span<float> y) {
    const auto first = load<std::uint32_t>(message, 0);
    std::fill(y.begin(), y.end(), 0.0F);
    for (std::size_t i = 0; i < kept(y.size()); ++i) y[(first + i) % y.size()] = load<float>(message, 1 + i);
  }
  void add(std::span<std::byte> sum, std::span<const std::byte> message, std::uint64_t n) {
    for (std::size_t i = 1; i <= kept(n); ++i) store(sum, i, load<float>(sum, i) + load<float>(message, i));
  }
};

} // namespace test

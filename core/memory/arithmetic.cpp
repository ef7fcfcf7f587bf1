// SPDX-License-Identifier: Apache-2.0
#include "memory/arithmetic.hpp"

#include <regatta/gemm.hpp>
#include <regatta/simd.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace regatta::arithmetic {
namespace {

// Enough partial sums to keep every instruction set busy. The order of addition is part of the result.
constexpr std::size_t lanes = 32;

void squares_loop(const float* x, std::size_t blocks, double* sums, std::uint32_t* bad) noexcept {
  double sum[lanes] = {};
  std::uint32_t count[lanes] = {};
  for (std::size_t b = 0; b < blocks; ++b, x += lanes) {
    for (std::size_t j = 0; j < lanes; ++j) {
      const auto bits = std::bit_cast<std::uint32_t>(x[j]);
      const std::uint32_t finite = (bits & 0x7f800000u) != 0x7f800000u ? ~0u : 0u; // exponent all ones: not finite
      const double v = std::bit_cast<float>(bits & finite);
      sum[j] += v * v;
      count[j] += 1 + finite; // 1 + (2^32 - 1) = 0
    }
  }
  for (std::size_t j = 0; j < lanes; ++j) {
    sums[j] += sum[j];
    bad[j] += count[j];
  }
}

// None of these pointers is `restrict`, because y may be x.
void fill_loop(std::span<float> y, float a) noexcept {
  for (float& v : y) v = a;
}

void axpy_loop(std::span<float> y, float a, std::span<const float> x) noexcept {
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += a * x[i];
}

void add_loop(std::span<float> y, std::span<const float> x) noexcept {
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += x[i];
}

void scale_loop(std::span<float> y, float a) noexcept {
  for (float& v : y) v *= a;
}

void accumulate_loop(std::span<float> u, float a, std::span<const float> g, std::span<float> v) noexcept {
  for (std::size_t i = 0; i < u.size(); ++i) {
    u[i] = a * u[i] + g[i];
    v[i] += u[i];
  }
}

void gemm_loop(const rg_gemm& what, const void* a, const void* b, float* c) noexcept {
  if (what.a_type == RG_BF16)
    rg::gemm(what, static_cast<const rg::bf16*>(a), static_cast<const rg::bf16*>(b), c);
  else
    rg::gemm(what, static_cast<const float*>(a), static_cast<const float*>(b), c);
}

} // namespace

void fill(std::span<float> y, float a) noexcept {
  rg::simd::widest<fill_loop>(y, a);
}

void axpy(std::span<float> y, float a, std::span<const float> x) noexcept {
  rg::simd::widest<axpy_loop>(y, a, x);
}

void add(std::span<float> y, std::span<const float> x) noexcept {
  rg::simd::widest<add_loop>(y, x);
}

void scale(std::span<float> y, float a) noexcept {
  rg::simd::widest<scale_loop>(y, a);
}

void accumulate(std::span<float> u, float a, std::span<const float> g, std::span<float> v) noexcept {
  rg::simd::widest<accumulate_loop>(u, a, g, v);
}

void gemm(const rg_gemm& what, const void* a, const void* b, float* c) noexcept {
  rg::simd::widest<gemm_loop>(what, a, b, c);
}

norm sum_of_squares(std::span<const float> x) noexcept {
  norm total;
  // In chunks, so that the lanes' 32-bit counts cannot overflow and rounding does not grow with the length.
  constexpr std::size_t chunk = std::size_t{1} << 16;
  for (std::size_t first = 0; first < x.size(); first += chunk) {
    const auto part = x.subspan(first, std::min(chunk, x.size() - first));
    double sums[lanes] = {};
    std::uint32_t bad[lanes] = {};
    const std::size_t blocks = part.size() / lanes;
    rg::simd::widest<squares_loop>(part.data(), blocks, sums, bad);
    if (const std::size_t rest = part.size() - blocks * lanes) {
      float last[lanes] = {};
      std::memcpy(last, part.data() + blocks * lanes, rest * sizeof(float));
      rg::simd::widest<squares_loop>(last, 1, sums, bad);
    }
    for (std::size_t j = 0; j < lanes; ++j) {
      total.sum_of_squares += sums[j];
      total.not_finite += bad[j];
    }
  }
  return total;
}

} // namespace regatta::arithmetic

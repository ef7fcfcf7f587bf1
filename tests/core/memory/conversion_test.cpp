// SPDX-License-Identifier: Apache-2.0
#include "memory/conversion.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include <regatta/random.hpp>

using namespace regatta;
using conversion::half;

namespace {

constexpr half types[] = {half::fp16, half::bf16};

// The value of 16 bits by the definition of the formats: sign, exponent, fraction.
double meaning(half type, std::uint16_t x) {
  const int fraction_bits = type == half::fp16 ? 10 : 7, bias = type == half::fp16 ? 15 : 127;
  const int largest = type == half::fp16 ? 31 : 255;
  const int exponent = (x & 0x7fff) >> fraction_bits, fraction = x & ((1 << fraction_bits) - 1);
  const double sign = x & 0x8000 ? -1 : 1;
  if (exponent == largest) return fraction ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  const double significand = std::ldexp(fraction, -fraction_bits) + (exponent ? 1 : 0);
  return sign * std::ldexp(significand, std::max(exponent, 1) - bias);
}

std::uint16_t narrowed(half type, float x) {
  std::uint16_t h = 0;
  conversion::narrow(type, std::span(&h, 1), std::span<const float>(&x, 1));
  return h;
}

} // namespace

TEST_CASE("all 65536 values are widened to what they mean, and come back as they were") {
  for (const half type : types) {
    std::vector<std::uint16_t> all(65536), back(65536);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
    std::vector<float> wide(65536);
    conversion::widen(type, wide, all);
    conversion::narrow(type, back, wide);
    for (std::size_t i = 0; i < all.size(); ++i) {
      CAPTURE(i);
      const double expected = meaning(type, all[i]);
      if (std::isnan(expected)) {
        REQUIRE(std::isnan(wide[i]));
        REQUIRE(std::isnan(meaning(type, back[i])));
      } else {
        REQUIRE(static_cast<double>(wide[i]) == expected);
        REQUIRE(std::signbit(wide[i]) == std::signbit(expected));
        REQUIRE(back[i] == all[i]);
      }
    }
  }
}

TEST_CASE(
    "a number between two values becomes the nearer one, half way the even one, and beyond the largest infinity") {
  for (const half type : types) {
    const int last = type == half::fp16 ? 0x7bff : 0x7f7f; // the largest that is finite
    for (int i = 0; i < last; i += type == half::fp16 ? 1 : 3) {
      const auto low = static_cast<std::uint16_t>(i), high = static_cast<std::uint16_t>(i + 1);
      const double a = meaning(type, low), b = meaning(type, high);
      const auto middle = static_cast<float>((a + b) / 2); // exact: one bit more
      REQUIRE(narrowed(type, middle) == (i % 2 ? high : low));
      REQUIRE(narrowed(type, std::nextafter(middle, 0.0F)) == low);
      REQUIRE(narrowed(type, std::nextafter(middle, std::numeric_limits<float>::infinity())) == high);
      REQUIRE(narrowed(type, -middle) == ((i % 2 ? high : low) | 0x8000));
    }
    CHECK(std::isinf(meaning(type, narrowed(type, std::numeric_limits<float>::max()))));
    CHECK(std::isinf(meaning(type, narrowed(type, std::numeric_limits<float>::infinity()))));
    CHECK(std::isnan(meaning(type, narrowed(type, std::numeric_limits<float>::quiet_NaN()))));
  }
  CHECK(std::isinf(meaning(half::fp16, narrowed(half::fp16, 65520.0F))));
  CHECK(meaning(half::fp16, narrowed(half::fp16, 65519.0F)) == 65504);
}

TEST_CASE("adding and rounding are made of narrowing and widening, at every length") {
  for (const half type : types)
    for (const std::size_t n : {0, 1, 7, 31, 64, 1000}) {
      std::vector<float> x(n), y(n);
      for (std::size_t i = 0; i < n; ++i) {
        x[i] = rg::random_normals(1, i)[0];
        y[i] = rg::random_normals(2, i)[0];
      }
      std::vector<std::uint16_t> h(n);
      std::vector<float> wide(n), sum = y, rounded = x;
      conversion::narrow(type, h, x);
      conversion::widen(type, wide, h);
      conversion::add(type, sum, h);
      conversion::round(type, rounded);
      for (std::size_t i = 0; i < n; ++i) {
        REQUIRE(sum[i] == y[i] + wide[i]);
        REQUIRE(rounded[i] == wide[i]);
      }
    }
}

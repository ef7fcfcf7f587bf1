// SPDX-License-Identifier: Apache-2.0
#include "memory/arithmetic.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include <regatta/random.hpp>
#include <regatta/simd.hpp>

using namespace regatta;

namespace {

// Lengths around every vector's width, and starts that are not aligned to it.
constexpr std::size_t lengths[] = {0, 1, 3, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 1023, 65536, 70001};
constexpr std::size_t starts[] = {0, 1, 5};

std::vector<float> values(std::size_t n, std::uint64_t seed) {
  std::vector<float> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = rg::random_normals(seed, i)[0];
  return v;
}

// Calls f(y, x, old y) on the same data at every length and start, and checks that nothing beside y was written.
template <class F> void everywhere(F f) {
  for (const auto n : lengths)
    for (const auto start : starts) {
      CAPTURE(n);
      CAPTURE(start);
      const auto x = values(n + 8, 1), before = values(n + 8, 2);
      auto y = before;
      f(std::span(y).subspan(start, n), std::span(x).subspan(start, n), std::span(before).subspan(start, n));
      for (std::size_t i = 0; i < start; ++i) REQUIRE(y[i] == before[i]);
      for (std::size_t i = start + n; i < y.size(); ++i) REQUIRE(y[i] == before[i]);
    }
}

bool rounds_twice(float a, float x, float y, float result) {
  volatile float product = a * x; // a fused multiply-add would not round here
  volatile float sum = y + product;
  return result == sum;
}

} // namespace

TEST_CASE("fill, add, scale and axpy do what they say, and nothing beside") {
  everywhere([](auto y, auto, auto) {
    arithmetic::fill(y, 2.5F);
    for (const float v : y) REQUIRE(v == 2.5F);
  });
  everywhere([](auto y, auto x, auto old) {
    arithmetic::add(y, x);
    for (std::size_t i = 0; i < y.size(); ++i) REQUIRE(y[i] == old[i] + x[i]);
  });
  everywhere([](auto y, auto, auto old) {
    arithmetic::scale(y, 0.3F);
    for (std::size_t i = 0; i < y.size(); ++i) REQUIRE(y[i] == old[i] * 0.3F);
  });
  everywhere([](auto y, auto x, auto old) {
    arithmetic::axpy(y, 0.3F, x);
    for (std::size_t i = 0; i < y.size(); ++i) REQUIRE(rounds_twice(0.3F, x[i], old[i], y[i]));
  });
}

TEST_CASE("y may be x") {
  auto y = values(1000, 3);
  const auto old = y;
  arithmetic::add(std::span(y), std::span<const float>(y));
  for (std::size_t i = 0; i < y.size(); ++i) REQUIRE(y[i] == old[i] + old[i]);
  arithmetic::axpy(std::span(y), -1, std::span<const float>(y));
  for (const float v : y) REQUIRE(v == 0);
}

TEST_CASE("the sum of squares is exact enough and in double") {
  for (const auto n : lengths) {
    CAPTURE(n);
    const auto x = values(n + 1, 4);
    for (const std::size_t start : {0, 1}) {
      const auto part = std::span(x).subspan(start, n);
      const long double expected = std::accumulate(part.begin(), part.end(), 0.0L, [](long double s, float v) {
        return s + static_cast<long double>(v) * static_cast<long double>(v);
      });
      const auto got = arithmetic::sum_of_squares(part);
      CHECK(got.not_finite == 0);
      CHECK(std::abs(got.sum_of_squares - static_cast<double>(expected)) <= 1e-13 * static_cast<double>(expected));
    }
  }
  const std::vector<float> huge(100, std::numeric_limits<float>::max());
  CHECK(std::isfinite(arithmetic::sum_of_squares(huge).sum_of_squares));
}

TEST_CASE("an element that is not finite is counted at every index, and left out of the sum") {
  constexpr float bad[] = {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                           std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::quiet_NaN()};
  for (std::size_t at = 0; at < 131; ++at) {
    std::vector<float> x(131, 1);
    x[at] = bad[at % 4];
    const auto got = arithmetic::sum_of_squares(x);
    REQUIRE(got.not_finite == 1);
    REQUIRE(got.sum_of_squares == 130);
  }
  const std::vector<float> all(200000, bad[2]);
  CHECK(arithmetic::sum_of_squares(all).not_finite == 200000);
  CHECK(arithmetic::sum_of_squares(all).sum_of_squares == 0);
}

TEST_CASE("every instruction set of this CPU gives the same bits") {
  const auto all_of = [] {
    std::vector<float> y = values(1023, 2), u = values(1023, 3);
    const std::vector<float> x = values(1023, 1);
    arithmetic::axpy(y, 0.3F, x);
    arithmetic::accumulate(u, 0.9F, x, y);
    y.insert(y.end(), u.begin(), u.end());
    y.push_back(static_cast<float>(arithmetic::sum_of_squares(x).sum_of_squares));
    return y;
  };
  const rg::simd::isa before = rg::simd::chosen;
  rg::simd::chosen = rg::simd::isa::baseline;
  const std::vector<float> expected = all_of();
  for (const rg::simd::isa wider : {rg::simd::isa::avx2, rg::simd::isa::avx512_core})
    if (wider <= rg::simd::supported()) {
      rg::simd::chosen = wider;
      CHECK(all_of() == expected);
    }
  rg::simd::chosen = before;
}

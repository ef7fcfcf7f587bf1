// SPDX-License-Identifier: Apache-2.0
#include "memory/selection.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include <regatta/random.hpp>

using namespace regatta;

namespace {

// By sorting all of it.
std::vector<std::int32_t> reference(const std::vector<float>& x, std::size_t k) {
  std::vector<std::int32_t> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return std::fabs(x[static_cast<std::size_t>(a)]) > std::fabs(x[static_cast<std::size_t>(b)]);
  });
  order.resize(k);
  std::sort(order.begin(), order.end());
  return order;
}

void check_top(const std::vector<float>& x, std::size_t k) {
  CAPTURE(x.size());
  CAPTURE(k);
  std::vector<std::int32_t> places(k);
  std::vector<float> values(k);
  selection::scratch memory;
  selection::top_k(x, places, values, memory);
  REQUIRE(places == reference(x, k));
  for (std::size_t i = 0; i < k; ++i) REQUIRE(values[i] == x[static_cast<std::size_t>(places[i])]);
}

std::vector<float> normals(std::size_t n) {
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = rg::random_normals(3, i)[0];
  return x;
}

} // namespace

TEST_CASE("the k largest are those that sorting finds, whatever the sample guesses") {
  for (const std::size_t n : {1, 63, 64, 65, 1000, 20'000, 300'001})
    for (const double share : {0.001, 0.004, 0.25, 1.0})
      check_top(normals(n), std::max<std::size_t>(1, static_cast<std::size_t>(static_cast<double>(n) * share)));
  check_top(normals(100), 0);
}

TEST_CASE("the k largest where a sample misleads: few large ones, all equal, all zero, rising, one in a block") {
  const std::size_t n = 200'000;
  std::vector<float> x(n, 0.0F);
  check_top(x, 200);
  for (std::size_t i = 0; i < 50; ++i) x[i * 3001] = 1.0F + static_cast<float>(i);
  check_top(x, 200);
  std::fill(x.begin(), x.end(), -2.5F);
  check_top(x, 777);
  std::iota(x.begin(), x.end(), 1.0F);
  check_top(x, 200);
  std::reverse(x.begin(), x.end());
  check_top(x, 200);
  for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<float>(i % 4) - 2;
  check_top(x, 200);
}

TEST_CASE("not a number counts as the largest: it is sent, and so it is seen") {
  auto x = normals(50'000);
  x[123] = std::numeric_limits<float>::quiet_NaN();
  x[45'678] = -std::numeric_limits<float>::infinity();
  std::vector<std::int32_t> places(3);
  std::vector<float> values(3);
  selection::scratch memory;
  selection::top_k(x, places, values, memory);
  CHECK(std::count(places.begin(), places.end(), 123) == 1);
  CHECK(std::count(places.begin(), places.end(), 45'678) == 1);
}

TEST_CASE("above a threshold: all of them, or none where they do not fit") {
  std::vector<float> x(1000, 0.0F);
  x[5] = 1;
  x[700] = -3;
  x[999] = 2;
  std::vector<std::int32_t> places(3);
  std::vector<float> values(3);
  CHECK(selection::above(x, 0, places, values) == 3);
  CHECK(places == std::vector<std::int32_t>{5, 700, 999});
  CHECK(values == std::vector<float>{1, -3, 2});
  CHECK(selection::above(x, 1, places, values) == 2); // not what equals it
  x[6] = 1;
  CHECK(selection::above(x, 0, places, values) == std::nullopt);
}

TEST_CASE("writing at places stays inside") {
  std::vector<float> y(10, 1.0F);
  const std::vector<std::int32_t> inside = {0, 9}, outside = {0, 10}, negative = {-1, 3};
  const std::vector<float> x = {5, 7};
  CHECK(selection::axpy_at(y, inside, 2, x));
  CHECK(y[0] == 11);
  CHECK(y[9] == 15);
  CHECK(selection::fill_at(y, inside, 0));
  CHECK(y == std::vector<float>{0, 1, 1, 1, 1, 1, 1, 1, 1, 0});
  for (const auto& wrong : {outside, negative}) {
    CHECK(!selection::axpy_at(y, wrong, 1, x));
    CHECK(!selection::fill_at(y, wrong, 3));
  }
  CHECK(y == std::vector<float>{0, 1, 1, 1, 1, 1, 1, 1, 1, 0});
}

// SPDX-License-Identifier: Apache-2.0
#include "results/statistics.hpp"

#include <doctest/doctest.h>

using namespace regatta;
using doctest::Approx;
using indices = std::vector<std::size_t>;

TEST_CASE("quantiles are those of R and NumPy, in any order of the samples") {
  const std::vector<double> samples{4, 1, 3, 2};
  CHECK(quantile(samples, 0) == 1);
  CHECK(quantile(samples, 1) == 4);
  CHECK(*quantile(samples, 0.1) == Approx(1.3)); // numpy.quantile([1, 2, 3, 4], 0.1)
  CHECK(*quantile(samples, 0.95) == Approx(3.85));
  CHECK(median(samples) == 2.5);
  CHECK(median({7}) == 7);
  CHECK_FALSE(median({}));
}

TEST_CASE("deviation and variation") {
  CHECK(*deviation({2, 4, 4, 4, 5, 5, 7, 9}) == Approx(2.13809)); // with n - 1
  CHECK(*variation({2, 4, 4, 4, 5, 5, 7, 9}) == Approx(2.13809 / 5));
  CHECK_FALSE(deviation({1}));
  CHECK_FALSE(variation({-1, 1}));
}

TEST_CASE("the samples that form the median") {
  CHECK(middle({5, 1, 3}) == indices{2});
  CHECK(middle({5, 1, 3, 4}) == indices{2, 3}); // the smaller one first
  CHECK(middle({}).empty());
}

TEST_CASE("samples are thinned evenly, with the first and the last") {
  CHECK(thinned(3, 5) == indices{0, 1, 2});
  CHECK(thinned(101, 3) == indices{0, 50, 100});
  const indices many = thinned(1000, 7);
  REQUIRE(many.size() == 7);
  CHECK(many.front() == 0);
  CHECK(many.back() == 999);
}

// SPDX-License-Identifier: Apache-2.0
//
// Expected values: the examples of Hollander, Wolfe and Chicken, as R's wilcox.test(conf.int = TRUE, exact = TRUE) and
// p.adjust() compute them; tables of Hahn and Meeker; and brute force over all signs.
#include "results/inference.hpp"

#include "results/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include <doctest/doctest.h>

using namespace regatta;
using doctest::Approx;

namespace {

std::vector<double> one_to(int n) {
  std::vector<double> v;
  for (int i = 1; i <= n; ++i) v.push_back(i);
  return v;
}

// The p-value by all 2^n signs, each equally likely: the share of those with a sum of ranks at least as extreme.
double p_by_all_signs(const std::vector<double>& d) {
  std::vector<double> ranks;
  for (const double x : d) {
    double below = 0, equal = 0;
    for (const double y : d) (std::abs(y) < std::abs(x) ? below : equal) += std::abs(y) <= std::abs(x);
    ranks.push_back(below + (equal + 1) / 2);
  }
  double observed = 0;
  for (std::size_t i = 0; i < d.size(); ++i) observed += d[i] > 0 ? ranks[i] : 0;
  double below = 0, above = 0;
  for (unsigned signs = 0; signs < 1U << d.size(); ++signs) {
    double sum = 0;
    for (std::size_t i = 0; i < d.size(); ++i) sum += signs >> i & 1U ? ranks[i] : 0;
    below += sum <= observed;
    above += sum >= observed;
  }
  return std::min(1.0, 2 * std::min(below, above) / static_cast<double>(1U << d.size()));
}

} // namespace

TEST_CASE("the interval of a median is made of order statistics with their exact coverage") {
  // Hahn and Meeker, table A.15b: n, k and coverage.
  struct row {
    int n;
    double low, high, coverage;
  };
  for (const row& r :
       {row{1, 1, 1, 0}, row{2, 1, 2, 0.5}, row{3, 1, 3, 0.75}, row{5, 1, 5, 0.9375}, row{6, 1, 6, 0.96875},
        row{8, 1, 8, 0.9921875}, row{9, 2, 8, 0.9609375}, row{10, 2, 9, 0.978515625}, row{20, 6, 15, 0.958610535}}) {
    CAPTURE(r.n);
    const auto i = median_interval(one_to(r.n));
    REQUIRE(i);
    CHECK(i->low == r.low);
    CHECK(i->high == r.high);
    CHECK(i->coverage == Approx(r.coverage));
    CHECK(i->estimate == Approx((r.n + 1) / 2.0));
  }
  CHECK_FALSE(median_interval({}));
}

TEST_CASE("the paired shift is the Hodges-Lehmann estimate with the interval of the signed ranks") {
  // R: wilcox.test(d, conf.int = TRUE): V = 40, p = 0.03906, 95 % from 0.010 to 0.7775 (an achieved 0.9609),
  // estimate 0.46 (Hollander and Wolfe's depression data).
  const std::vector<double> before{1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30},
      after{0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29};
  std::vector<double> d;
  for (std::size_t i = 0; i < before.size(); ++i) d.push_back(before[i] - after[i]);
  CHECK(paired_p(d) == Approx(0.0390625));
  const auto i = paired_shift(d);
  REQUIRE(i);
  CHECK(i->estimate == Approx(0.46));
  CHECK(i->low == Approx(0.010));
  CHECK(i->high == Approx(0.786));
  CHECK(i->coverage == Approx(0.9609375));
  // The interval ends where the test begins to reject, as both rest on one distribution.
  const auto rejects = [&](double shift) {
    std::vector<double> moved;
    for (const double x : d) moved.push_back(x - shift);
    return paired_p(moved) <= 0.05;
  };
  constexpr double little = 1e-6;
  CHECK(rejects(i->low - little));
  CHECK_FALSE(rejects(i->low + little));
  CHECK_FALSE(rejects(i->high - little));
  CHECK(rejects(i->high + little));
}

TEST_CASE("the fewest pairs that can decide at 5 % are six") {
  for (int n = 3; n <= 7; ++n) {
    const auto i = paired_shift(one_to(n));
    REQUIRE(i);
    CHECK((i->coverage >= 0.95) == (n >= 6));
    CHECK(paired_p(one_to(n)) == Approx(std::pow(2.0, 1 - n)));
    CHECK((paired_p(one_to(n)) <= 0.05) == (n >= 6));
  }
  CHECK(fewest_pairs(1) == 6);
  CHECK(fewest_pairs(2) == 7);
  CHECK(fewest_pairs(10) == 9);
  CHECK(fewest_unpaired(1) == 4);  // 2 / 70
  CHECK(fewest_unpaired(2) == 5);  // 2 / 252
  CHECK(fewest_unpaired(10) == 6); // 2 / 924
}

TEST_CASE("p-values are those of all signs, with equal values and zeros too") {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    std::vector<double> d;
    for (int i = 0; i < 3 + round % 8; ++i) {
      int x = 0;
      while (x == 0) x = static_cast<int>(random() % 9) - 4;
      d.push_back(x);
    }
    CHECK(paired_p(d) == Approx(p_by_all_signs(d)));
    std::vector<double> with_zeros = d;
    with_zeros.insert(with_zeros.begin(), {0, 0});
    CHECK(paired_p(with_zeros) == paired_p(d));
  }
  CHECK(paired_p({}) == 1);
  CHECK(paired_p({0, 0, 0}) == 1);
}

TEST_CASE("the unpaired shift and its p-value are those of the rank sums") {
  // Hollander and Wolfe's permeability data; R: W = 35, p = 0.2544; estimate 0.305; 95 % from -0.15 to 0.76.
  const std::vector<double> x{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46},
      y{1.15, 0.88, 0.90, 0.74, 1.21};
  CHECK(unpaired_p(x, y) == Approx(0.254412).epsilon(1e-4));
  CHECK(unpaired_p(y, x) == Approx(unpaired_p(x, y)));
  const auto i = unpaired_shift(x, y);
  REQUIRE(i);
  CHECK(i->estimate == Approx(0.305));
  CHECK(i->low == Approx(-0.15));
  CHECK(i->high == Approx(0.76));
  CHECK(i->coverage >= 0.95);
  CHECK(unpaired_p({1, 2, 3}, {4, 5, 6}) == Approx(0.1));
  CHECK(unpaired_p({1, 2, 3, 4}, {5, 6, 7, 8}) == Approx(2.0 / 70));
  CHECK(unpaired_p({1, 1, 1}, {1, 1, 1}) == 1);
}

TEST_CASE("many samples use the normal approximation, near the exact values") {
  std::mt19937 random(2);
  std::normal_distribution<double> noise(0.02, 1);
  std::vector<double> a, b, d;
  for (int i = 0; i < 200; ++i) d.push_back(noise(random));
  const double exact = paired_p(d);
  const auto exact_shift = paired_shift(d);
  d.push_back(0.02);
  CHECK(paired_p(d) == Approx(exact).epsilon(0.05));
  CHECK(paired_shift(d)->low == Approx(exact_shift->low).epsilon(0.1));
  for (int i = 0; i < 50; ++i) {
    a.push_back(noise(random));
    b.push_back(noise(random));
  }
  const double exact_sums = unpaired_p(a, b);
  const auto exact_difference = unpaired_shift(a, b);
  a.push_back(0.02);
  CHECK(unpaired_p(a, b) == Approx(exact_sums).epsilon(0.1));
  CHECK(unpaired_shift(a, b)->high == Approx(exact_difference->high).epsilon(0.1));
}

TEST_CASE("Holm's adjustment multiplies the smallest p-value by the number of comparisons") {
  // R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")
  const std::vector<double> adjusted = holm({0.01, 0.04, 0.03, 0.005});
  const std::vector<double> expected{0.03, 0.06, 0.06, 0.02};
  REQUIRE(adjusted.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(adjusted[i] == Approx(expected[i]));
  CHECK(holm({0.9, 0.8}) == std::vector<double>{1, 1});
  CHECK(holm({}).empty());
}

TEST_CASE("the smallest detectable change shrinks with n, by Student's t") {
  // In units of the spread: 3.1, 1.7 and 1.0 at n = 3, 5, 10.
  CHECK(smallest_detectable(1, 3) == Approx(3.097).epsilon(0.001));
  CHECK(smallest_detectable(1, 5) == Approx(1.662).epsilon(0.001));
  CHECK(smallest_detectable(1, 10) == Approx(0.995).epsilon(0.002));
  CHECK(std::isinf(smallest_detectable(1, 1)));
  for (const double spread : {0.005, 0.02, 0.05}) {
    const std::size_t n = repeats_to_detect(spread, 0.03);
    CHECK(n >= 6);
    CHECK(smallest_detectable(spread, n) <= 0.03);
    // The test finds such a difference in four of five draws: 1,000 of them vary by 1.3 %.
    std::mt19937 random(5);
    std::normal_distribution<double> noise(0.03, spread);
    int found = 0;
    for (int i = 0; i < 1000; ++i) {
      std::vector<double> d(n);
      for (double& x : d) x = noise(random);
      found += paired_p(d) <= 0.05;
    }
    CHECK(found >= 770);
    if (n > 6) CHECK(found <= 880); // no more repeats than it takes
  }
  CHECK(repeats_to_detect(1, 1e-9) == 10'000);
  CHECK(repeats_to_detect(1e-9, 1, 10) == fewest_pairs(10));
}

TEST_CASE("intervals of noise with spikes cover the truth as often as they say") {
  // One repeat in ten is delayed by far more than the noise, as other programs do.
  std::mt19937 random(3);
  std::normal_distribution<double> noise(0, 0.01);
  constexpr int rounds = 2000;
  const auto sample = [&] { return noise(random) + (random() % 10 == 0 ? 0.2 : 0.0); };
  for (const int n : {6, 10, 20}) {
    int paired = 0, unpaired = 0, median = 0;
    // The true median of a sample: that of the noise, moved by the spikes.
    std::vector<double> many(200'001);
    for (double& x : many) x = sample();
    const double truth = *regatta::median(many);
    for (int round = 0; round < rounds; ++round) {
      std::vector<double> a, b, d;
      for (int i = 0; i < n; ++i) {
        a.push_back(sample());
        b.push_back(sample());
        d.push_back(a.back() - b.back());
      }
      const auto covers = [](const std::optional<interval>& i, double value) {
        return i->low <= value && value <= i->high;
      };
      paired += covers(paired_shift(d), 0);
      unpaired += covers(unpaired_shift(a, b), 0);
      median += covers(median_interval(a), truth);
    }
    CAPTURE(n);
    // 95 % or more, less three standard deviations of this simulation's own share.
    constexpr int enough = static_cast<int>(rounds * (0.95 - 3 * 0.0049));
    CHECK(paired >= enough);
    CHECK(unpaired >= enough);
    CHECK(median >= enough);
  }
}

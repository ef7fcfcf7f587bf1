// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include <regatta/random.hpp>

namespace regatta {

// Random numbers from 0 to n - 1; k has a probability proportional to (k + 1)^-s. With s near 1 that is the frequency
// of words in a language. Rejection-inversion after Hörmann and Derflinger, "Rejection-inversion to generate variates
// from monotone discrete distributions" (1996): a few logarithms per number, independent of n, and no table.
class zipf {
public:
  // Requires n >= 1 and s >= 0.
  zipf(std::uint64_t n, double s) : n_(static_cast<double>(n)), s_(s) {
    low_ = area(1.5) - 1;
    high_ = area(n_ + 0.5);
    sure_ = 2 - position(area(2.5) - height(2));
  }

  // [any] Returns random number `at` of the sequence of `seed`; it depends on these two alone.
  std::uint64_t at(std::uint64_t seed, std::uint64_t at) const noexcept {
    for (std::uint32_t tried = 0;; ++tried) {
      const rg::bits4 bits = rg::random_bits(seed, at, tried, rg::stream_data);
      for (const std::uint32_t b : {bits[0], bits[1]}) { // more than nine in ten are accepted
        const double u = high_ + (static_cast<double>(b) + 0.5) * 0x1p-32 * (low_ - high_), x = position(u);
        const double k = std::fmin(std::fmax(std::floor(x + 0.5), 1), n_);
        if (k - x <= sure_ || u >= area(k + 0.5) - height(k)) return static_cast<std::uint64_t>(k) - 1;
      }
    }
  }

private:
  double height(double x) const noexcept { return std::pow(x, -s_); }
  // The integral of height from 1 to x; position() is its inverse.
  double area(double x) const noexcept {
    return std::abs(s_ - 1) < 1e-9 ? std::log(x) : (std::pow(x, 1 - s_) - 1) / (1 - s_);
  }
  double position(double a) const noexcept {
    return std::abs(s_ - 1) < 1e-9 ? std::exp(a) : std::pow(std::fmax(1 + a * (1 - s_), 0), 1 / (1 - s_));
  }

  double n_, s_, low_, high_, sure_;
};

} // namespace regatta

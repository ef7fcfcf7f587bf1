// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "results/inference.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace regatta {

// The ratio B / A of a figure, from its values in the repeats of A and B, by their logarithms: twice and half are
// equally far from 1. All values must be finite and above 0, and each side must have at least one. All are [any].
class ratio_samples {
public:
  // `paired`: repeat i of both ran in the same round. Sides with different numbers of repeats are taken as independent.
  ratio_samples(const std::vector<double>& a, const std::vector<double>& b, bool paired);
  // The figure itself: A is 1.
  explicit ratio_samples(const std::vector<double>& b);

  bool paired() const { return paired_; }
  std::size_t repeats() const { return repeats_; } // the fewer of the two sides
  // Whether neither side varies between its repeats, so that the ratio is exact and nothing is to be tested. A single
  // repeat shows that only if both sides have the same value.
  bool exact() const { return exact_.has_value(); }

  // Returns Hodges and Lehmann's estimate with its interval at 95 %; if exact(), the ratio with coverage 1.
  interval ratio() const;
  // Returns the p-value of "the true ratio is `ratio`" (above 0): signed-rank test of pairs, else rank-sum test.
  double p(double ratio) const;
  // Returns the standard deviation of the logarithm of the ratio of one repeat of each side; std::nullopt if a side has
  // fewer than two.
  std::optional<double> spread() const;
  // Returns the number of repeats of each side with which a test of `tests` at once can find a difference at all.
  std::size_t fewest(std::size_t tests) const;

private:
  std::vector<double> a_, b_; // logarithms; of pairs, `b_` has their differences and `a_` is empty
  std::size_t repeats_;
  bool paired_;
  std::optional<double> exact_; // the ratio
};

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// Intervals and tests for a few repeats of a run. All are exact for independent samples (those of the sums of ranks up
// to 200 pairs or 50 + 50 samples, beyond which the normal approximation of the sum is used); none assumes that the
// samples are normally distributed, because other load on a machine delays single repeats by far more than the rest.
// (Bootstrap intervals cover too rarely at n below 20.) Samples may be in any order and must be finite. All are [any].
//
// The logarithm of a ratio is the natural one: a comparison takes d = log(a / b) of each repeat, so that "5 % faster"
// and "5 % slower" are equally far from 0, and exp() of an interval's bounds is the interval of the ratio.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace regatta {

inline constexpr double usual_confidence = 0.95;

// The estimate of a value, and the bounds that contain the true value with probability `coverage`.
struct interval {
  double estimate = 0, low = 0, high = 0, coverage = 0;
};

// Returns the median and the order statistics around it: x_(k) and x_(n+1-k) for the largest k that covers the true
// median with probability `confidence` or more, by the binomial distribution (Hahn and Meeker, Statistical Intervals,
// section 5.2). If even the smallest and the largest sample cover it less often, as for n < 6 at 95 %, returns these
// two, with their coverage 1 - 2^(1-n). Returns std::nullopt without samples.
std::optional<interval> median_interval(std::vector<double> samples, double confidence = usual_confidence);

// For paired samples d, whose distribution is symmetric if both sides of a pair have the same noise: returns the
// Hodges-Lehmann estimate (the median of the means of all pairs, a sample with itself included) and the bounds from
// these means by the signed-rank distribution (Hollander, Wolfe and Chicken, Nonparametric Statistical Methods,
// sections 3.2 and 3.3). Coverage below `confidence` and no samples as in median_interval().
std::optional<interval> paired_shift(const std::vector<double>& d, double confidence = usual_confidence);

// For independent samples: returns the Hodges-Lehmann estimate of a - b (the median of all differences) and its bounds
// by the rank-sum distribution (the same book, sections 4.2 and 4.3). Coverage as above; std::nullopt if either is
// empty.
std::optional<interval> unpaired_shift(const std::vector<double>& a, const std::vector<double>& b,
                                       double confidence = usual_confidence);

// Return the two-sided p-value of "no difference": Wilcoxon's signed-rank test, without samples that are 0, and the
// rank-sum test. Equal values share the mean of their ranks, and the distribution is that of the shared ranks. 1 for no
// samples.
double paired_p(const std::vector<double>& d);
double unpaired_p(const std::vector<double>& a, const std::vector<double>& b);

// Returns the p-values adjusted for comparing several times, in the order given (Holm, A simple sequentially rejective
// multiple test procedure, 1979): if differences are believed where the adjusted value is at most 0.05, the probability
// of one or more false ones is at most 0.05.
std::vector<double> holm(const std::vector<double>& p);

// Return the smallest n with which a test of `comparisons` at once can find a difference at all, at a level of 5 %:
// the n of pairs, 1 + log2(comparisons / 0.05) rounded up, and the n of each of two independent samples. `comparisons`
// is 1 or more.
std::size_t fewest_pairs(std::size_t comparisons);
std::size_t fewest_unpaired(std::size_t comparisons);

// Returns the smallest true difference that a comparison of n pairs whose differences have the standard deviation
// `spread` finds in four of five cases at a level of 5 %: (t(0.975) + t(0.8)) * spread / sqrt(n), with Student's t of n
// - 1 degrees of freedom. Infinity for n < 2.
double smallest_detectable(double spread, std::size_t n);

// Returns the smallest n (above 100: one at most 5 % larger) with which paired_p() finds a true difference of
// `difference` in four of five cases at a level of 5 %, but at least fewest_pairs(comparisons): as
// smallest_detectable(), with the level that the signed-rank test attains at this n, and its efficiency of 3 / pi
// beside the t test (Hollander, Wolfe and Chicken, section 3.11). Requires difference > 0. 10,000 if more are needed.
std::size_t repeats_to_detect(double spread, double difference, std::size_t comparisons = 1);

} // namespace regatta

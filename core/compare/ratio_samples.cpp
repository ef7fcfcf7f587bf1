// SPDX-License-Identifier: Apache-2.0
#include "compare/ratio_samples.hpp"

#include "results/statistics.hpp"

#include <algorithm>
#include <cmath>

namespace regatta {
namespace {

using values = std::vector<double>;

constexpr double rounding = 1e-12; // of logarithms and their differences

bool constant(const values& samples) {
  return std::all_of(samples.begin(), samples.end(), [&](double x) { return x == samples.front(); });
}

values logarithms(const values& samples) {
  values logs;
  for (const double x : samples) logs.push_back(std::log(x));
  return logs;
}

} // namespace

ratio_samples::ratio_samples(const values& a, const values& b, bool paired)
    : a_(logarithms(a)), b_(logarithms(b)), repeats_(std::min(a.size(), b.size())),
      paired_(paired && a.size() == b.size()) {
  if (constant(a) && constant(b) && (repeats_ > 1 || a.front() == b.front())) exact_ = b.front() / a.front();
  if (!paired_) return;
  for (std::size_t i = 0; i < b_.size(); ++i) b_[i] -= a_[i];
  a_.clear();
}

ratio_samples::ratio_samples(const values& b) : b_(logarithms(b)), repeats_(b.size()), paired_(true) {
  if (constant(b) && repeats_ > 1) exact_ = b.front();
}

interval ratio_samples::ratio() const {
  if (exact_) return {*exact_, *exact_, *exact_, 1};
  const interval shift = paired_ ? *paired_shift(b_) : *unpaired_shift(b_, a_);
  return {std::exp(shift.estimate), std::exp(shift.low), std::exp(shift.high), shift.coverage};
}

double ratio_samples::p(double ratio) const {
  values moved = b_;
  for (double& x : moved) {
    x -= std::log(ratio);
    if (paired_ && std::abs(x) < rounding) x = 0; // else the signs of rounding errors would be tested
  }
  return paired_ ? paired_p(moved) : unpaired_p(moved, a_);
}

std::optional<double> ratio_samples::spread() const {
  if (paired_) return deviation(b_);
  const auto a = deviation(a_), b = deviation(b_);
  return a && b ? std::optional(std::hypot(*a, *b)) : std::nullopt;
}

std::size_t ratio_samples::fewest(std::size_t tests) const {
  return paired_ ? fewest_pairs(tests) : fewest_unpaired(tests);
}

} // namespace regatta

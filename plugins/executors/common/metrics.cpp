// SPDX-License-Identifier: Apache-2.0
#include "metrics.hpp"

#include <algorithm>
#include <cmath>

namespace executors {
namespace {

double correct(const double* sums) {
  return sums[1] > 0 ? sums[0] / sums[1] : 0;
}

} // namespace

metric top1() {
  return {"top1", 3, correct};
}

metric of_tokens(bool accuracy) {
  if (accuracy) return {"masked_accuracy", 4, correct};
  return {"perplexity", 4, [](const double* sums) { return sums[1] > 0 ? std::exp(sums[3] / sums[1]) : 0; }};
}

// The probability that a positive is ranked above a negative; pairs in the same bucket count as one half.
metric area_under_curve(std::size_t buckets) {
  return {"auc", 2 * buckets + 2, [buckets](const double* sums) {
            double above = 0, negatives = 0, positives = 0; // summed from the lowest bucket on
            for (std::size_t b = 0; b < buckets; ++b) {
              above += sums[buckets + b] * (negatives + sums[b] / 2);
              negatives += sums[b];
              positives += sums[buckets + b];
            }
            return above / (negatives * positives); // NaN if the data has one class only: the AUC is undefined
          }};
}

metric pairs_in_order() {
  return {"pos_neg_ratio", 3, [](const double* sums) { return sums[0] / std::max(1.0, sums[1] - sums[0]); }};
}

std::uint64_t measured::count(const rg_batch& b) const {
  if (!counts()) return b.samples;
  const auto* labels = static_cast<const std::int32_t*>(b.inputs[counted_.input]);
  const auto all = static_cast<std::ptrdiff_t>(b.samples * counted_.each);
  return static_cast<std::uint64_t>(all - std::count(labels, labels + all, 0));
}

double measured::divisor(const rg_batch& b) const {
  const auto samples = static_cast<double>(b.global_samples);
  if (!counts()) return samples;
  if (b.global_counts) return static_cast<double>(std::max<std::uint64_t>(1, b.global_counts[count_kind]));
  return std::max(1.0, static_cast<double>(count(b)) * samples / static_cast<double>(b.samples));
}

} // namespace executors

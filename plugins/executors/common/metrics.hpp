// SPDX-License-Identifier: Apache-2.0
//
// What sums over evaluations come to.
#pragma once

#include <cstddef>

namespace executors {

// How often a positive has a higher probability than a negative; half where they share a bucket. `sums` are negatives by
// bucket, then positives.
inline double area_under_curve(const double* sums, std::size_t buckets) {
  double above = 0, negatives = 0, positives = 0; // from the lowest bucket on
  for (std::size_t b = 0; b < buckets; ++b) {
    above += sums[buckets + b] * (negatives + sums[b] / 2);
    negatives += sums[b];
    positives += sums[buckets + b];
  }
  return above / (negatives * positives); // not a number where there is but one class: nobody knows
}

} // namespace executors

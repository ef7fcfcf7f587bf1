// SPDX-License-Identifier: Apache-2.0
//
// Order statistics and spread of a few samples. The samples may be in any order and must not be NaN. Without samples
// the functions return std::nullopt or an empty list. All are [any].
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace regatta {

// Returns the value below which a share q (0 to 1) of the samples lies, interpolated linearly between neighbours
// (Hyndman and Fan's type 7, the default of R and NumPy).
std::optional<double> quantile(std::vector<double> samples, double q);
inline std::optional<double> median(std::vector<double> samples) {
  return quantile(std::move(samples), 0.5);
}

// Returns the sample standard deviation (n - 1); std::nullopt for fewer than two samples.
std::optional<double> deviation(const std::vector<double>& samples);

// Returns the coefficient of variation: deviation() over the mean. Returns std::nullopt for fewer than two samples, or
// if the mean is 0.
std::optional<double> variation(const std::vector<double>& samples);

// Returns the indices of the samples that form the median: the middle one, or for an even number the middle two, the
// smaller sample first. Use: if each sample is a sum of parts, the means of the parts over these samples add up to the
// median. The medians of the single parts would not, because each may come from another sample.
std::vector<std::size_t> middle(const std::vector<double>& samples);

// Selects at most `most` (2 or more) of `count` samples. Returns their indices, ascending and evenly spaced, always
// with the first and the last sample; all indices if count <= most.
std::vector<std::size_t> thinned(std::size_t count, std::size_t most);

} // namespace regatta

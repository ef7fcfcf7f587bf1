// SPDX-License-Identifier: Apache-2.0
//
// Order statistics and spread of a few samples. The samples may be in any order. Without samples the functions
// return std::nullopt or an empty list.
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

std::optional<double> mean(const std::vector<double>& samples);

// Coefficient of variation: sample standard deviation (n - 1) over the mean. std::nullopt for fewer than two samples.
std::optional<double> variation(const std::vector<double>& samples);

// Returns the indices of the samples that form the median: the middle one, or two for an even number (none for none).
// The means of other quantities over these samples are consistent with the median; the medians of each quantity are
// not.
std::vector<std::size_t> middle(const std::vector<double>& samples);

// Returns which of `count` samples to keep so that at most `most` (2 or more) are kept: evenly chosen, always with the
// first and the last.
std::vector<std::size_t> thinned(std::size_t count, std::size_t most);

} // namespace regatta

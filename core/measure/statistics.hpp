// SPDX-License-Identifier: Apache-2.0
//
// Order statistics and spread of a handful of samples. All take any order and return nothing for no sample.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace regatta {

// The value below which a share q (0 to 1) of the samples lies, interpolated linearly between neighbours (Hyndman and
// Fan's type 7, the default of R and NumPy).
std::optional<double> quantile(std::vector<double> samples, double q);
inline std::optional<double> median(std::vector<double> samples) {
  return quantile(std::move(samples), 0.5);
}

std::optional<double> mean(const std::vector<double>& samples);

// Coefficient of variation: sample standard deviation (n - 1) over the mean. Nothing for fewer than two samples.
std::optional<double> variation(const std::vector<double>& samples);

// Which samples make the median: the middle one, or the two of an even number (or none). Means over them of whatever
// was measured along are consistent with the median, which medians of each by itself would not be.
std::vector<std::size_t> middle(const std::vector<double>& samples);

// Which of `count` samples to keep where at most `most` (2 or more) are kept: evenly picked, the first and the last among
// them.
std::vector<std::size_t> thinned(std::size_t count, std::size_t most);

} // namespace regatta

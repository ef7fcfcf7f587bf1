// SPDX-License-Identifier: Apache-2.0
#include "comm/outliers.hpp"

#include <algorithm>
#include <cmath>

#include "results/statistics.hpp"

namespace regatta::comm {

double robust_spread(const std::vector<double>& values) {
  constexpr double normal_scale = 1.4826; // standard deviation of a normal distribution over its median deviation
  const double middle = median(values).value_or(0);
  std::vector<double> distances;
  for (const double v : values) distances.push_back(std::abs(v - middle));
  return normal_scale * median(distances).value_or(0);
}

outlier_rule::outlier_rule(const std::vector<double>& values) {
  constexpr double share = 0.15, deviations = 5;
  if (values.empty()) return;
  // Two values have no spread beside their difference.
  usual_ = values.size() < 3 ? *std::ranges::max_element(values) : median(values).value_or(0);
  allowed_ = share * usual_;
  if (values.size() > 2) allowed_ = std::max(allowed_, deviations * robust_spread(values));
}

} // namespace regatta::comm

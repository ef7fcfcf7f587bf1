// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace regatta::comm {

// Returns the standard deviation of `values`, estimated from the median of their distances from their median: a few
// values far off do not change it. 0 without values.
double robust_spread(const std::vector<double>& values);

// Which of some values, of hosts that should be equal, are too low: lower than the median by more than 15 %, and by
// more than five robust_spread(). Of two values, one that is more than 15 % below the other. usual() is the median; of
// two values the larger one; without values 0.
class outlier_rule {
public:
  explicit outlier_rule(const std::vector<double>& values);
  bool is_low(double value) const { return value < usual_ - allowed_; }
  double usual() const { return usual_; }

private:
  double usual_ = 0, allowed_ = 0;
};

} // namespace regatta::comm

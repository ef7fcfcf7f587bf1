// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "experiment/experiment.hpp"

#include <string>

namespace regatta {

// [any] Returns whether the target of a metric of this name is an upper bound: by measure.target_is, and with "auto"
// for the metrics "perplexity" and "loss".
inline bool target_is_upper_bound(const measure_config& m, const std::string& metric) {
  return m.target_is == "at_most" || (m.target_is == "auto" && (metric == "perplexity" || metric == "loss"));
}

// [any] Returns whether `value` of the metric reaches measure.target; false without a target.
inline bool reaches_target(const measure_config& m, const std::string& metric, double value) {
  if (m.target == 0) return false;
  return target_is_upper_bound(m, metric) ? value <= m.target : value >= m.target;
}

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#include "results/compared.hpp"

namespace regatta {

const std::vector<figure_kind>& compared_figures() {
  static const std::vector<figure_kind> kinds = {
      {"samples_per_second", true, "faster", "slower"}, {"efficiency", true, "more efficient", "less efficient"},
      {"step_seconds", false, "shorter", "longer"},     {"bytes.sent_per_step", false, "less", "more"},
      {"memory_peak_bytes", false, "less", "more"},     {"loss", false, "lower", "higher"},
      {"seconds_to_target", false, "faster", "slower"}, {"steps_to_target", false, "earlier", "later"},
      {"seconds_to_loss", false, "faster", "slower"}};
  return kinds;
}

std::vector<std::string> compared_paths() {
  std::vector<std::string> paths;
  for (const figure_kind& kind : compared_figures()) paths.emplace_back(kind.path);
  return paths;
}

const std::vector<std::string>& comparable_parts() {
  static const std::vector<std::string> parts = {"model", "data", "optimizer", "precision", "synchrony"};
  return parts;
}

} // namespace regatta

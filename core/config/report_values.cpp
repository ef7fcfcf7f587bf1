// SPDX-License-Identifier: Apache-2.0
#include "config/report_values.hpp"

#include <algorithm>

namespace regatta {

namespace {

// The figures of a family are its name with each of the endings; without a name, the endings alone.
struct family {
  const char* name;
  std::vector<const char*> endings;
};

std::vector<std::string> figures_of(const std::vector<family>& families) {
  std::vector<std::string> figures;
  for (const family& f : families)
    for (const char* ending : f.endings) figures.push_back(std::string(f.name) + ending);
  return figures;
}

} // namespace

const std::vector<std::string>& report_values() {
  static const std::vector<const char*> of_figure{"", ".median", ".min", ".max", ".low", ".high", ".coverage", ".n"};
  static const std::vector<const char*> of_ratio = [] {
    std::vector<const char*> endings = of_figure;
    endings.push_back(".smallest_detectable");
    return endings;
  }();
  static const std::vector<std::string> values = figures_of({
      {"samples_per_second", of_figure},
      {"samples_per_second", {".cv"}},
      {"throughput", of_figure},
      {"", {"batches_per_second"}},
      {"baseline_samples_per_second", of_figure},
      {"noise", of_ratio},
      {"speedup", of_ratio},
      {"efficiency", of_ratio},
      {"contention", of_ratio},
      {"efficiency_over_contention", of_ratio},
      {"undisturbed", {".n", ".samples_per_second", ".efficiency"}},
      {"lost", {".input", ".compute", ".update", ".exposed_communication", ".wait", ".other", ".blocked"}},
      {"step_seconds", {"", ".median", ".p10", ".p90", ".p99"}},
      {"time", {".input", ".forward", ".backward", ".update", ".exposed_communication", ".wait", ".other", ".blocked"}},
      {"", {"communication_total", "server_update", "drain_seconds"}},
      {"bytes.sent_per_step", {".worker", ".server"}},
      {"bytes.received_per_step", {".worker", ".server"}},
      {"", {"given_bytes"}},
      {"loss", {".first", ".last"}},
      {"metric", {".value"}},
      {"steps_to_target", of_figure},
      {"seconds_to_target", of_figure},
      {"target", {".value", ".reached"}},
      {"", {"evaluation_seconds"}},
      {"", {"workers", "servers", "threads", "batch_per_worker", "global_batch"}},
      {"", {"parameters", "table_parameters", "flops_per_sample", "skipped_records"}},
  });
  return values;
}

bool is_report_value(std::string_view path) {
  if (std::ranges::find(report_values(), path) != report_values().end()) return true;
  constexpr std::string_view prefix = "strategy.";
  if (!path.starts_with(prefix)) return false;
  const auto dot = path.rfind('.');
  const std::string_view last = path.substr(dot + 1);
  return dot > prefix.size() && path.substr(prefix.size(), dot - prefix.size()).find('.') == std::string_view::npos &&
         (last == "mean" || last == "max" || last == "per_step");
}

} // namespace regatta

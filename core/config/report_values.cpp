// SPDX-License-Identifier: Apache-2.0
#include "config/report_values.hpp"

#include <algorithm>

namespace regatta {

const std::vector<std::string>& report_values() {
  static const std::vector<std::string> values{"samples_per_second",
                                               "samples_per_second.median",
                                               "samples_per_second.min",
                                               "samples_per_second.max",
                                               "samples_per_second.cv",
                                               "throughput",
                                               "throughput.median",
                                               "batches_per_second",
                                               "efficiency",
                                               "efficiency.median",
                                               "efficiency.min",
                                               "efficiency.max",
                                               "speedup",
                                               "contention",
                                               "efficiency_over_contention",
                                               "baseline_samples_per_second",
                                               "lost.input",
                                               "lost.compute",
                                               "lost.update",
                                               "lost.exposed_communication",
                                               "lost.wait",
                                               "lost.other",
                                               "step_seconds",
                                               "step_seconds.median",
                                               "step_seconds.p10",
                                               "step_seconds.p90",
                                               "step_seconds.p99",
                                               "time.input",
                                               "time.forward",
                                               "time.backward",
                                               "time.update",
                                               "time.exposed_communication",
                                               "time.wait",
                                               "time.other",
                                               "communication_total",
                                               "server_update",
                                               "drain_seconds",
                                               "bytes.sent_per_step.worker",
                                               "bytes.sent_per_step.server",
                                               "bytes.received_per_step.worker",
                                               "bytes.received_per_step.server",
                                               "given_bytes",
                                               "loss.first",
                                               "loss.last",
                                               "metric.value",
                                               "workers",
                                               "servers",
                                               "threads",
                                               "batch_per_worker",
                                               "global_batch",
                                               "parameters",
                                               "table_parameters",
                                               "skipped_records"};
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

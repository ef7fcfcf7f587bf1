// SPDX-License-Identifier: Apache-2.0
#include "cli/run_traces.hpp"

#include "base/failure.hpp"
#include "files/write_atomically.hpp"
#include "timeline/alignment.hpp"
#include "timeline/perfetto.hpp"
#include "timeline/rank_trace.hpp"

#include <system_error>

#include <fmt/format.h>

namespace regatta {

std::vector<std::string> run_traces::take(std::vector<nlohmann::json>& ranks) const {
  std::vector<std::string> warnings;
  const std::string file = (folder_ / (run_ + ".pftrace.gz")).string();
  try {
    std::vector<rank_trace> traces;
    for (nlohmann::json& result : ranks) {
      const auto trace = result.find("trace");
      if (trace == result.end()) continue;
      traces.push_back(rank_trace_from(*trace));
      result.erase(trace);
    }
    if (traces.empty()) return warnings;
    keep_traced_steps(traces);
    align_clocks(traces, {}); // all ranks run on this machine; cluster.hosts only imitates several
    for (const rank_trace& t : traces)
      if (t.dropped)
        warnings.push_back(fmt::format("{}: the memory of rank {} was full, and {} of its events are missing; trace "
                                       "fewer steps (measure.trace)",
                                       file, t.rank, t.dropped));
    std::error_code ignored;
    std::filesystem::create_directories(folder_, ignored);
    write_atomically(file, perfetto_file(traces));
  } catch (const failure& e) {
    warnings.push_back(fmt::format("{}: no trace was written: {}", file, e.what()));
  }
  return warnings;
}

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#include "cli/run_traces.hpp"

#include "base/failure.hpp"
#include "base/text.hpp"
#include "timeline/alignment.hpp"
#include "timeline/rank_trace.hpp"
#include "timeline/trace_file.hpp"

#include <map>
#include <utility>

#include <fmt/format.h>

namespace regatta {

std::vector<std::string> run_traces::take(std::vector<nlohmann::json>& ranks,
                                          const std::vector<timed_host>& hosts) const {
  std::vector<std::string> warnings;
  const std::string file = (folder_ / (run_ + ".pftrace.gz")).string();
  try {
    std::vector<rank_trace> traces;
    for (nlohmann::json& result : ranks) {
      const auto trace = result.find("trace");
      if (trace == result.end()) continue;
      rank_trace& t = traces.emplace_back(rank_trace_from(*trace));
      result.erase(trace);
      if (hosts.empty()) continue;
      t.clock = result.at("host"); // containers of one machine may have clocks of their own
      t.role += ", host " + one_line(t.clock);
    }
    if (traces.empty()) return warnings;
    std::map<std::string, clock_course> courses;
    for (const timed_host& host : hosts) courses[host.name] = host.clock;
    align_clocks(traces, courses); // without a launcher all ranks run on this machine; cluster.hosts imitates several
    warnings = write_trace_file(file, std::move(traces));
  } catch (const failure& e) {
    warnings.push_back(fmt::format("{}: no trace was written: {}", file, e.what()));
  }
  return warnings;
}

} // namespace regatta

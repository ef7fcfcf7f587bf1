// SPDX-License-Identifier: Apache-2.0
#include "timeline/trace_file.hpp"

#include "files/write_atomically.hpp"
#include "timeline/alignment.hpp"
#include "timeline/perfetto.hpp"

#include <system_error>

#include <fmt/format.h>

namespace regatta {

std::vector<std::string> write_trace_file(const std::filesystem::path& file, std::vector<rank_trace> traces) {
  std::vector<std::string> warnings;
  keep_traced_steps(traces);
  for (const rank_trace& t : traces)
    if (t.dropped)
      warnings.push_back(fmt::format("{}: the memory of rank {} was full, and {} of its events are missing; trace "
                                     "fewer steps (measure.trace)",
                                     file.string(), t.rank, t.dropped));
  std::error_code ignored; // the file then cannot be written
  std::filesystem::create_directories(file.parent_path(), ignored);
  write_atomically(file, perfetto_file(traces));
  return warnings;
}

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "timeline/rank_trace.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace regatta {

// Writes the traced steps of all ranks to `file`, for which it makes a folder. All times must be of one clock
// (align_clocks()). Returns warnings: events were dropped. Throws failure (run) if the file cannot be written.
std::vector<std::string> write_trace_file(const std::filesystem::path& file, std::vector<rank_trace> traces);

} // namespace regatta

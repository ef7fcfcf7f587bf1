// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "timeline/rank_trace.hpp"

namespace regatta {

struct trace_options {
  std::string file;
  std::optional<std::uint64_t> step; // its number in the run; nullopt: the last one
  std::size_t top = 15;              // lines of the table; one more sums the others
};

// Returns the ranks of a trace of `regatta run`. Throws failure (usage) if the file is none. [main]
std::vector<rank_trace> read_trace(const std::string& file);

// Runs `regatta trace`: prints the critical path of a step of a trace. Returns 0. Throws failure (usage) if the file is
// no trace of `regatta run` or has no such step. [main]
int trace_verb(const trace_options& o);

} // namespace regatta

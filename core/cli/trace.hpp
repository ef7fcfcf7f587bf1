// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace regatta {

struct trace_options {
  std::string file;
  std::optional<std::uint64_t> step; // its number in the run; nullopt: the last one
  std::size_t top = 15;              // lines of the table
};

// Runs `regatta trace`: prints the critical path of a step of a trace. Returns 0. Throws failure (usage) if the file is
// no trace of `regatta run` or has no such step. [main]
int trace_verb(const trace_options& o);

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trace/event.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace regatta {

// The recorded events of one rank of a run or of a simulation.
struct rank_trace {
  std::uint32_t rank = 0;
  std::string role;                     // "worker 0 + server 0"
  std::string clock;                    // names the clock of all times: ranks with equal names share it
  std::uint64_t dropped = 0;            // events for which there was no memory
  std::vector<std::string> strings{""}; // texts of the events; the first one is empty
  std::vector<trace_event> events;      // in any order

  const std::string& text(std::uint32_t index) const { return strings.at(index); }
};

// Returns the events that trace_recorder::take() has put into `j`. Throws failure (run) if `j` is not from there.
rank_trace rank_trace_from(const nlohmann::json& j);

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// A host that leaves a simulated run before its end.
#pragma once

#include "simulate/simulated_run.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace regatta {

struct departure {
  std::vector<std::uint32_t> ranks; // of the host
  std::uint64_t steps = 0;          // that they take part in, warm-up included
  std::string text;                 // for people
};

// [any] Returns what leaves the run, as the machine file says; std::nullopt: nothing before its end. `whole` is the
// simulation of `setup` without it. Throws failure: run if the run ends there, because the strategy does not survive a
// death, a server is on that host, or no other host has workers; usage if that host has no workers.
std::optional<departure> departure_of(const run_to_simulate& r, const simulation_setup& setup,
                                      const simulation_result& whole);

} // namespace regatta

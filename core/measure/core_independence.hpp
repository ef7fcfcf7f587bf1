// SPDX-License-Identifier: Apache-2.0
//
// How much two CPUs give at once of what each gives alone. A virtual machine shows two hyperthreads of one core as two
// cores; only a measurement tells.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace regatta {

struct core_independence {
  int first = 0, second = 0; // the two CPUs
  // Throughput of both at once over the sum of each alone, above 0 and at most 1: 1 for two independent cores,
  // about 0.5 for two hyperthreads of one core.
  double fma = 0;  // multiply-adds in registers
  double copy = 0; // copies of 16 MiB, more than a core's own caches hold
  // Other processes had a CPU in every measurement of both at once: fma or copy is too low.
  bool disturbed = false;
  // A cache line from one to the other and back. Nothing where the two made no round trip in 100 ms.
  std::optional<double> line_round_trip_seconds;
};

// Measures two CPUs for about 100 ms, on threads that are pinned to them; longer where other load disturbs.
// Returns nothing where the two are the same CPU, where threads cannot be pinned, or where memory lacks. [main]
std::optional<core_independence> measure_core_independence(int first, int second);

// {"cpus": [0, 1], "fma": 0.51, "copy": 0.93, "disturbed": false, "line_round_trip_seconds": 1.1e-7}; null for nothing.
nlohmann::json to_json(const std::optional<core_independence>& c);

// What two cores do at once, from the JSON: "FMA 0.51, copies 0.93 of two (hyperthreads of one core)"; empty for null.
std::string independence_text(const nlohmann::json& c);

} // namespace regatta

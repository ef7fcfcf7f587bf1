// SPDX-License-Identifier: Apache-2.0
//
// Measures the combined throughput of two CPUs relative to the sum of each alone. A virtual machine may show two
// hyperthreads of one core as two cores; only a measurement reveals it.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace regatta {

struct core_independence {
  int first = 0, second = 0; // the two CPUs
  // Throughput of both at once over the sum of each alone, above 0 and at most 1: 1 for two independent cores, about
  // 0.5 for two hyperthreads of one core.
  double fma = 0;  // multiply-adds in registers
  double copy = 0; // copies of 16 MiB, more than a core's private caches hold
  // True: other processes used one of the CPUs in every measurement of both at once, so `fma` or `copy` may be too low.
  bool disturbed = false;
  // Round trip of a cache line between the two CPUs: the least mean over 50 trips. std::nullopt if the first 50 trips
  // took more than 100 ms.
  std::optional<double> line_round_trip_seconds;
};

// [main] Measures the CPUs with the numbers `first` and `second` on threads pinned to them. Takes about 100 ms, under
// other load up to about 300 ms. Returns std::nullopt if the two are the same CPU, if threads cannot be started or
// pinned, or if memory is short.
std::optional<core_independence> measure_core_independence(int first, int second);

// The rates of two CPUs that work at once, and the values that influence them.
struct rates_at_once {
  double fma = 0;                                // multiply-adds in registers, FLOP/s of both together
  double copy = 0;                               // copies of 16 MiB: copied bytes/s of both together, each counted once
  std::optional<double> line_round_trip_seconds; // as in core_independence
  std::optional<double> clock_hz;                // of the first CPU after the multiply-adds; std::nullopt: unknown
};

// [main] Measures the CPUs `first` and `second` once, without choosing the best of several measurements: other load
// shows in the rates. Takes about 25 ms. Returns std::nullopt as measure_core_independence() does.
std::optional<rates_at_once> measure_rates_at_once(int first, int second);

// Returns {"fma": 1.2e11, "copy": 2.1e10, "line_round_trip_seconds": 1.1e-7, "clock_hz": 2.9e9}; null for std::nullopt.
nlohmann::json to_json(const std::optional<rates_at_once>& r);

// Returns {"cpus": [0, 1], "fma": 0.51, "copy": 0.93, "disturbed": false, "line_round_trip_seconds": 1.1e-7}; null for
// std::nullopt.
nlohmann::json to_json(const std::optional<core_independence>& c);

// Returns the JSON of to_json() in words: "FMA 0.51, copies 0.93 of two (hyperthreads of one core)"; empty for null or
// other JSON.
std::string independence_text(const nlohmann::json& c);

} // namespace regatta

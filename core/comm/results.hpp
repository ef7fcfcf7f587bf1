// SPDX-License-Identifier: Apache-2.0
//
// Turns the measurements of ranks into tables. Schema regatta.comm/1:
//   { "schema", "context": { regatta, git, build, date, command, hosts, plugins, warnings, machine: rates of two CPUs
//                            at once before the runs, { fma, copy, line_round_trip_seconds, clock_hz } or null },
//     "results": [ { transport, op, algorithm (null: there is only one), ranks, wait ("spinning" with --spin, but
//                    "blocking" where ranks share cores), bytes, iterations, seconds: { median, p99, min },
//                    algorithm_bandwidth, bus_bandwidth, wrong: elements, in two checked operations, of all ranks,
//                    cpu_seconds } ],
//     "failures": [ { transport, ranks, error } ],
//     "matrix": only with --matrix, where results is []: [ one for each transport and number of ranks:
//               comm/matrix.hpp ] }
// Times of an iteration are those of its slowest rank; for `send`, they are of one message, half an iteration.
// cpu_seconds is for one iteration (`send`: one message), all ranks together. Bandwidths are in bytes per second.
#pragma once

#include "comm/plan.hpp"
#include "report/render.hpp"

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace regatta::comm {

// Returns the entries of one run for "results". `by_rank` has the measurements of every rank, all with the same
// operations and sizes in the same order.
nlohmann::json entries_of(const plan& p, const std::vector<std::vector<measurement>>& by_rank);

// Returns the document as text in this format, ended by a newline. csv and markdown have the results or the matrix
// only; console also has the machine, warnings, failures and, beside results, the formulas. `width` is that of the
// terminal, for console; 0: unlimited.
std::string render_comm(const nlohmann::json& document, format f, std::size_t width);

// Returns lines that explain the columns, for --help and above the table of results.
std::string formulas();

} // namespace regatta::comm

// SPDX-License-Identifier: Apache-2.0
//
// From what the ranks measured to tables. Schema regatta.comm/1:
//   { "schema", "context": { regatta, git, build, date, command, hosts, warnings },
//     "results": [ { transport, op, algorithm (null: there is but one), ranks, wait ("blocking" | "spinning"), bytes,
//                    iterations, seconds: { median, p99, min }, algorithm_bandwidth, bus_bandwidth, wrong,
//                    cpu_seconds } ],
//     "failures": [ { transport, ranks, error } ] }
// A time is that of the slowest rank of an iteration; cpu_seconds that of one iteration, of all ranks together;
// bandwidths are bytes a second.
#pragma once

#include "comm/plan.hpp"
#include "report/render.hpp"

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace regatta::comm {

// The entries of one run. `by_rank`: what each rank brought back, the same operations and sizes in the same order.
nlohmann::json entries_of(const plan& p, const std::vector<std::vector<measurement>>& by_rank);

// The whole document, ended by a newline. `width`: of the terminal, 0: as wide as it takes.
std::string render_comm(const nlohmann::json& document, format f, std::size_t width);

// What the columns mean, for --help and above the table.
std::string formulas();

} // namespace regatta::comm

// SPDX-License-Identifier: Apache-2.0
//
// The links between ranks as tables. A matrix of a document regatta.comm/1, member "matrix":
//   { "transport", "latency_bytes", "bandwidth_bytes", "ranks": [ { "rank", "host" } ],
//     "alone": null if no link was measured so, else
//              { "latency", "bandwidth", "loss": matrices [from][to], null where nothing was measured,
//                "marks": [ { "figure": "latency" | "bandwidth" | "loss", "from", "to", "value", "usual",
//                             "within": both ranks are on one host } ] },
//     "at_once": the same for disjoint pairs at once, and "sums": sums_of_rounds(); no "sums" of many ranks
//                (comm/survey.hpp), of which not all pairs of a round are measured at once }
// latency: s, half of the median round trip. bandwidth: bytes/s in one direction. loss: share of the TCP segments of
// the sender's host that were sent again meanwhile; null if that host sent none. Links are marked as comm/links.hpp
// says.
#pragma once

#include "comm/links.hpp"
#include "comm/plan.hpp"

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace regatta::comm {

// Returns the links of one pass, "alone" or "at_once", of all ranks. `results` are those of measure_pairs(), by rank.
std::vector<rank_link> links_of(const std::vector<nlohmann::json>& results, const char* pass);

// Returns a matrix of one run. `hosts` has the name of each rank's host.
nlohmann::json matrix_of(const plan& p, const std::vector<std::string>& hosts,
                         const std::vector<nlohmann::json>& results);

// Returns the bytes/s of each round of tournament(ranks): the sum over its pairs, of each the mean of both directions,
// because the directions of a pair take turns.
std::vector<double> sums_of_rounds(const std::vector<rank_link>& at_once, std::uint32_t ranks);

// Returns the matrix as tables, one for each pass and figure (loss only if segments were sent again), with a row for
// each sender and a column for each receiver, and lists the marked links. Marked cells end in "*".
std::string matrix_text(const nlohmann::json& matrix);
// Returns a line of column names, then for each pass a line for each rank as sender and each other one as receiver:
// transport, pass, from, host of from, to, host of to, latency, bandwidth, loss (units as in a matrix; empty: not
// measured), marks. `matrices` is an array.
std::string matrix_csv(const nlohmann::json& matrices);

// Returns for example "3@n3 to 5@n5: bandwidth 12.5 MB/s, usual between hosts 25 MB/s", where 3 is a rank and n3 its
// host. `ranks` as in a matrix.
std::string mark_text(const nlohmann::json& mark, const nlohmann::json& ranks);
// Returns a figure of a link as text with unit: "23.1 us", "118 MB/s", "0.4 %".
std::string link_figure_text(const std::string& figure, double value);

} // namespace regatta::comm

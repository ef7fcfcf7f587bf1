// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "report/text_table.hpp"

namespace regatta {

// [any] Returns a claim in words: its own text, else one made of its members, such as "samples_per_second of strategy
// dgc / strategy allreduce". A claim is an element of "claims" of result.json (compare/claims.hpp).
std::string claim_name(const nlohmann::json& claim);
// [any] Returns its bounds, such as "0.97 to 1.03" or "at least 1.1".
std::string claim_bounds(const nlohmann::json& claim);
// [any] Returns the verdict: "holds", "fails", or "undecided: " with the repeats that would do or the reason; then "
// (simulated)" if the claim is about a simulation.
std::string claim_verdict(const nlohmann::json& claim);
// [any] Returns the estimate, such as "1.19"; "-" if the claim has no value.
std::string claim_value(const nlohmann::json& claim);
// [any] Returns the interval, such as "1.18–1.21"; "-" if the claim has no value or if both ends are equal.
std::string claim_interval(const nlohmann::json& claim);

// [any] Returns a table with a row for each claim of a result, also for undecided ones; without rows if it has none.
text_table table_of_claims(const nlohmann::json& result);

} // namespace regatta

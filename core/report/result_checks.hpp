// SPDX-License-Identifier: Apache-2.0
//
// Checks whether results can be right at all. `regatta run` prints the findings and ends with exit_code::wrong if there
// is one (unless it was interrupted, or a case failed with exit_code::usage or plugin); reports only print them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace regatta {

// Returns one sentence for each problem; empty: there is none. `entries` is the array "results" of result.json; entries
// without figures (has_figures(), fields.hpp) are ignored.
//  - a loss that the entry lists is not finite (of a run of more than 1000 steps it lists 1000)
//  - replicas that must agree differ
//  - the weights never moved, though a gradient was not zero and a learning rate above 0
//  - a synchronous strategy of several workers sent nothing in all timed steps
//  - the loss of the first step differs between cases that train on the same samples with the same weights in that
//    step: cases of equal model, data, precision and global batch are compared with the first of them. Only the order
//    of additions may differ: a relative difference of 1e-5 is allowed in fp32, of 1e-2 in other precisions.
std::vector<std::string> check_results(const nlohmann::json& entries);

// Returns a message if a repeat of an entry did not reach its "target" at any evaluation, or if nothing was evaluated;
// std::nullopt if all reached it, if there is no target, or if the status is not "ok".
std::optional<std::string> missed_target(const nlohmann::json& entry);

// Returns the key without its section, or the section for SECTION.plugin: "train.batch" -> "batch", "strategy.geo_ps.k"
// -> "geo_ps.k", "strategy.plugin" -> "strategy".
std::string short_name(const std::string& key);

// Returns the swept values of an entry, which distinguish it: "strategy allreduce, workers 2"; "the case" without a
// sweep.
std::string case_label(const nlohmann::json& entry);

} // namespace regatta

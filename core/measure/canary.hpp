// SPDX-License-Identifier: Apache-2.0
//
// Checks whether results can be right at all. Any finding ends the program with exit_code::wrong.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace regatta {

// Returns one sentence for each problem in the entries of result.json's "results"; entries without figures are ignored.
//  - the loss of a step is not finite
//  - replicas that must agree differ
//  - the weights never moved, though a gradient was not zero and a learning rate above 0
//  - a synchronous strategy of several workers sent nothing in all timed steps
//  - the loss of the first step differs between cases that train on the same samples with the same weights in that
//    step: cases of equal model, data, precision and global batch. Only the order of additions may differ: 1e-5
//    relative in fp32, 1e-2 in other precisions.
std::vector<std::string> check_results(const nlohmann::json& entries);

// Returns a message if the metric of an "ok" entry misses measure.target; std::nullopt if it reaches the target, or if
// `target` is 0. A metric named "perplexity" or "loss" must be at most the target, any other at least.
std::optional<std::string> missed_target(const nlohmann::json& entry, double target);

// Returns the short form of a key: "train.batch" -> "batch", "strategy.plugin" -> "strategy", "strategy.geo_ps.k" ->
// "geo_ps.k".
std::string short_name(const std::string& key);

// Returns the swept values of an entry, which distinguish it: "strategy allreduce, workers 2"; "the case" without a
// sweep.
std::string case_label(const nlohmann::json& entry);

} // namespace regatta

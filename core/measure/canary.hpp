// SPDX-License-Identifier: Apache-2.0
//
// Whether results can be right at all. Any answer but "nothing wrong" ends the program with exit_code::wrong.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace regatta {

// What is wrong with the entries of result.json's "results", a sentence each; those without figures are left out.
//  - the loss of a step is not finite
//  - replicas that must agree do not
//  - the weights never moved, though a gradient was not zero and a learning rate above 0
//  - a synchronous strategy of several workers sent nothing in all timed steps
//  - the loss of the first step differs between cases that then train on the same samples with the same weights: those
//    with the same model, data, precision and global batch. Only the order of additions may differ: 1e-5 relative in
//    fp32, 1e-2 in shorter types.
std::vector<std::string> check_results(const nlohmann::json& entries);

// Whether an "ok" entry misses what measure.target asks of its metric; nothing where it reached it, or where target is
// 0. A metric called "perplexity" or "loss" must be at most the target, any other at least.
std::optional<std::string> missed_target(const nlohmann::json& entry, double target);

// "train.batch" -> "batch", "strategy.plugin" -> "strategy", "strategy.geo_ps.k" -> "geo_ps.k": how people call a key.
std::string short_name(const std::string& key);

// What tells an entry from the others: "strategy allreduce, workers 2", or "the case" without a sweep.
std::string case_label(const nlohmann::json& entry);

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// Claims about a result, decided by its repeats.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace regatta {

// [any] Returns the claims of an experiment (config/claims.hpp) as "claims" of its result.json, in their order: each
// with these members added.
//
//   verdict        "holds", "fails" or "undecided"
//   reason         why no number of repeats can decide it; null: some number can
//   value          of the ratio left / right, or without right of the figure itself: estimate, low, high, coverage
//   left_median, right_median   of the figure
//   repeats        of the side that has fewer; 0 if `reason` is not null
//   repeats_needed null, or of an undecided claim: the repeats that would probably decide it
//   p_adjusted     an object: of each bound the p-value of "the true value is the bound", null if nothing varies; empty
//                  if `reason` is not null
//   simulated      true; only if the document is that of a simulation
//
// Repeats of left and right are pairs if both ran in the same rounds (compare/samples.hpp), else independent. The tests
// are those of ratio_samples, adjusted by Holm over all bounds of all claims, at a level of 5 %. A claim fails if one
// of its bounds is violated significantly, and holds if all are kept significantly; where nothing varies, the value
// itself decides. `document` is a result (schema regatta.result/1); throws nlohmann::json::exception if it is none.
nlohmann::json decided_claims(const nlohmann::json& document, const nlohmann::json& claims);

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// Which repeats were disturbed by something else on the machine. The rule is fixed before the first run, and disturbed
// repeats stay in all figures: leaving them out afterwards could select the results that are liked.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "results/campaign_records.hpp"

namespace regatta {

// [any] Returns the rule in words, for "sampling" of the context.
std::string disturbance_rule();

// [any] Returns the medians of `fma` and `copy` over the rounds, with the other members unknown; std::nullopt without
// rounds.
std::optional<machine_rates> usual_rates(const std::vector<machine_rates>& rounds);

// [any] Returns why a repeat was disturbed, as texts with the figures; empty if it was not. `rates` are those of its
// round and `usual` the campaign's; a figure that is unknown disturbs nothing.
std::vector<std::string> disturbances(const repeat_figures& repeat, const std::optional<machine_rates>& rates,
                                      const std::optional<machine_rates>& usual);

} // namespace regatta

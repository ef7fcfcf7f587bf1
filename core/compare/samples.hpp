// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace regatta {

// [any] Returns the figure `path` (of history_figures()) of every repeat of a case's entry; "loss" is that of the last
// step. Empty if a repeat lacks it, or a value is not finite or not above 0, so that it has no logarithm.
std::vector<double> samples_of(const nlohmann::json& entry, const std::string& path);

// [any] Returns the highest step, counted from 0, whose loss both entries list; std::nullopt if there is none.
std::optional<std::size_t> last_common_step(const nlohmann::json& a, const nlohmann::json& b);
// [any] Returns the loss at that step of every repeat; empty if a repeat does not list it.
std::vector<double> losses_at(const nlohmann::json& entry, std::size_t step);
// [any] Returns for every repeat the seconds since the begin of the timed region until the loss was at most `loss`;
// empty if a repeat does not reach it within the timed region.
std::vector<double> seconds_to_loss(const nlohmann::json& entry, double loss);

} // namespace regatta

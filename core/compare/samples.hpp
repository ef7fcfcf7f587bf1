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

// The figure of every repeat of two cases; either is empty if a repeat lacks it.
struct samples_of_two {
  std::vector<double> a, b;
  std::string note; // what the figure is of, if that depends on the cases: "loss: of step 49, counted from 0"
};
// [any] As samples_of(), but "loss" is that of the last common step.
samples_of_two samples_of_both(const nlohmann::json& a, const nlohmann::json& b, const std::string& path);

// [any] Returns whether repeat i of both ran in the same round, for every i, so that both met the same machine. That of
// simulations is drawn from the same numbers.
bool in_the_same_rounds(const nlohmann::json& a, const nlohmann::json& b);

} // namespace regatta

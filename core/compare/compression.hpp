// SPDX-License-Identifier: Apache-2.0
//
// A strategy that compresses gradients trains differently, so its samples/s alone are no speed-up: it must be compared
// with a side that sends gradients in 16 bits, which any strategy can do, and both must reach the same loss.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace regatta {

struct compression_rules {
  std::optional<double> loss; // the higher of both last losses, if every repeat of both reaches it in the timed region
  std::string missing;        // why figures of speed must not be compared; empty: they may be
};

// [any] Returns the rules for two entries, each with the document that it is from; std::nullopt if both or neither
// compress gradients.
std::optional<compression_rules> rules_of_compression(const nlohmann::json& document_a, const nlohmann::json& a,
                                                      const nlohmann::json& document_b, const nlohmann::json& b);

// [any] Returns compression_rules::loss for any two entries.
std::optional<double> loss_of_both(const nlohmann::json& a, const nlohmann::json& b);

// [any] Whether the figure is one of speed that says nothing of the loss.
bool is_speed(const std::string& path);

} // namespace regatta

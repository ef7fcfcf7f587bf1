// SPDX-License-Identifier: Apache-2.0
#include "compare/compression.hpp"

#include "base/text.hpp"
#include "compare/samples.hpp"
#include "compare/settings.hpp"

#include <algorithm>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta {
namespace {

using nlohmann::json;

bool has_16_bit_gradients(const json& document, const json& entry) {
  const auto settings = settings_of(document, entry);
  const auto setting = [&](const std::string& key) {
    const auto found = settings.find(key);
    return found == settings.end() ? json() : found->second;
  };
  const auto is_16_bit = [](const json& type) { return type == "bf16" || type == "fp16"; };
  // Where the sweep varies the strategy, its parameters stand under its id.
  const json id = setting("strategy.plugin");
  const json given = document.at("context").value("given", json::object()).value("strategy", json::object());
  const json own = id.is_string() ? given.value(id.get<std::string>(), json::object()) : json::object();
  // Not train.precision: with it alone, messages stay fp32.
  return is_16_bit(setting("strategy.wire")) || is_16_bit(own.value("wire", json()));
}

bool compresses(const json& entry) {
  return entry.value("lossy", json()) == true;
}

} // namespace

std::optional<double> loss_of_both(const json& a, const json& b) {
  const json of_a = a.value("loss", json()), of_b = b.value("loss", json());
  if (!of_a.is_object() || !of_b.is_object() || !of_a.at("last").is_number() || !of_b.at("last").is_number())
    return std::nullopt;
  const double loss = std::max(of_a["last"].get<double>(), of_b["last"].get<double>());
  return seconds_to_loss(a, loss).empty() || seconds_to_loss(b, loss).empty() ? std::nullopt : std::optional(loss);
}

std::optional<compression_rules> rules_of_compression(const json& document_a, const json& a, const json& document_b,
                                                      const json& b) {
  if (compresses(a) == compresses(b)) return std::nullopt;
  compression_rules rules{loss_of_both(a, b), ""};
  std::vector<std::string> missing;
  if (!(compresses(b) ? has_16_bit_gradients(document_a, a) : has_16_bit_gradients(document_b, b)))
    missing.emplace_back("a baseline that sends gradients in 16 bits (its strategy's wire)");
  if (!rules.loss) missing.emplace_back("a loss that both reach within the timed region");
  if (!missing.empty())
    rules.missing = "one side compresses gradients, so samples/s are no speed-up without " + join(missing, " and ");
  return rules;
}

bool is_speed(const std::string& path) {
  return path == "samples_per_second" || path == "efficiency" || path == "step_seconds";
}

} // namespace regatta

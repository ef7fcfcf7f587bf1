// SPDX-License-Identifier: Apache-2.0
#include "report/claims_table.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "report/fields.hpp"
#include "report/result_checks.hpp"

namespace regatta {
namespace {

using nlohmann::json;

// Returns the settings of one side that the other does not have: "strategy dgc".
std::string side_text(const json& side, const json& other) {
  std::string text;
  for (const auto& [key, value] : side.items())
    if (!other.is_object() || other.value(key, json()) != value)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", short_name(key), plain_text(value));
  return text.empty() ? "the case" : text;
}

// Ratios have three decimals, other figures four digits.
std::string number_text(const json& claim, const json& number) {
  if (!number.is_number()) return "-";
  return claim.at("right").is_null() ? plain_text(number) : fmt::format("{:.3f}", number.get<double>());
}

} // namespace

std::string claim_name(const json& claim) {
  if (claim.at("text").is_string()) return one_line(claim["text"].get<std::string>());
  const json &left = claim.at("left"), &right = claim.at("right");
  const std::string metric = claim.at("metric"), of = side_text(left, right);
  return right.is_null() ? fmt::format("{} of {}", metric, of)
                         : fmt::format("{} of {} / {}", metric, of, side_text(right, left));
}

std::string claim_bounds(const json& claim) {
  const json &least = claim.at("at_least"), &most = claim.at("at_most");
  if (least.is_null()) return "at most " + plain_text(most);
  if (most.is_null()) return "at least " + plain_text(least);
  return fmt::format("{} to {}", plain_text(least), plain_text(most));
}

namespace {

std::string decision(const json& claim) {
  std::string verdict = claim.at("verdict");
  if (verdict != "undecided") return verdict;
  if (claim.at("reason").is_string()) return "undecided: " + one_line(claim["reason"].get<std::string>());
  const json& needed = claim.at("repeats_needed");
  if (!needed.is_number()) return "undecided: the value is too near the bound for any number of repeats";
  return fmt::format("undecided: about {} repeats would do", needed.get<std::size_t>());
}

} // namespace

std::string claim_verdict(const json& claim) {
  return decision(claim) + (claim.value("simulated", false) ? " (simulated)" : "");
}

std::string claim_value(const json& claim) {
  return claim.at("value").is_object() ? number_text(claim, claim["value"].at("estimate")) : "-";
}

std::string claim_interval(const json& claim) {
  const json& value = claim.at("value");
  if (!value.is_object() || value.at("low") == value.at("high")) return "-";
  return fmt::format("{}–{}", number_text(claim, value["low"]), number_text(claim, value["high"]));
}

text_table table_of_claims(const json& result) {
  text_table table;
  table.columns = {{"claim"}, {"bounds"}, {"value", true}, {"from–to", true, 2}, {"n", true, 3}, {"verdict"}};
  table.keys = 1;
  for (const json& claim : result.value("claims", json::array()))
    table.rows.push_back({{claim_name(claim), claim_bounds(claim), claim_value(claim), claim_interval(claim),
                           claim.at("value").is_object() ? std::to_string(claim.at("repeats").get<std::size_t>()) : "-",
                           claim_verdict(claim)},
                          ""});
  return table;
}

} // namespace regatta

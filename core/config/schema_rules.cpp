// SPDX-License-Identifier: Apache-2.0
#include "config/schema_rules.hpp"

#include "registry/parameters.hpp"
#include "text/values.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace regatta {

std::optional<kind> find_plugin_section(std::string_view name) {
  for (const kind section : plugin_sections)
    if (name == name_of(section)) return section;
  return {};
}

namespace {

using nlohmann::json;

bool is_plugin_choice(const schema_key& key) {
  return key.leaf() == "plugin" && find_plugin_section(key.section()).has_value();
}

// Returns true for a key that takes a word or a time. No plugin can have such a parameter.
bool is_words_or_time(const schema_key& key) {
  return key.rule.type == RG_PARAM_STRING && key.rule.unit == RG_UNIT_NANOSECONDS;
}

rg_param time_rule(const schema_key& key) {
  rg_param rule = key.rule;
  rule.type = RG_PARAM_INT;
  rule.choices = nullptr;
  return rule;
}

rg_param word_rule(const schema_key& key) {
  rg_param rule = key.rule;
  rule.unit = RG_UNIT_NONE;
  rule.min = rule.max = 0;
  return rule;
}

} // namespace

const schema_key* find_key(std::string_view path) {
  for (const schema_key& key : schema())
    if (path == key.rule.name) return &key;
  return nullptr;
}

std::string expectation(const schema_key& key) {
  if (is_plugin_choice(key)) return fmt::format("the id of a {}", key.section());
  if (is_words_or_time(key)) return expectation(word_rule(key)) + ", or " + expectation(time_rule(key));
  if (key.above_min) return fmt::format("a number above {}", key.rule.min);
  if (key.below_max) return fmt::format("a number from {} to below {}", key.rule.min, key.rule.max);
  return expectation(key.rule);
}

std::optional<json> accept(const schema_key& key, const json& given) {
  if (is_words_or_time(key)) {
    if (auto word = accept(word_rule(key), given)) return word;
    const auto time = accept(time_rule(key), given);
    return time ? std::optional<json>(exact_nanoseconds(time->get<std::int64_t>())) : std::nullopt;
  }
  auto value = accept(key.rule, given);
  if (value && key.above_min && !(value->get<double>() > key.rule.min)) return {};
  if (value && key.below_max && !(value->get<double>() < key.rule.max)) return {};
  return value;
}

std::vector<std::string> section_names() {
  std::vector<std::string> names;
  for (const schema_key& key : schema())
    if (std::find(names.begin(), names.end(), key.section()) == names.end()) names.push_back(key.section());
  names.insert(names.end(), {"sweep", "claim", "report"});
  return names;
}

} // namespace regatta

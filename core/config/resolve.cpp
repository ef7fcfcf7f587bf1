// SPDX-License-Identifier: Apache-2.0
//
// Writes a case as TOML that can be run again, and as JSON that its ranks read.
#include "base/failure.hpp"
#include "base/units.hpp"
#include "config/document.hpp"
#include "config/effect.hpp"
#include "config/load.hpp"
#include "config/schema.hpp"

#include <fmt/format.h>

namespace regatta {
namespace {

using nlohmann::json;

// Keys that apply to the whole experiment are not part of a case.
bool of_case(const schema_key& key) {
  return key.section() != "report" && key.path() != "experiment.plugin_path";
}

} // namespace

std::string resolved_toml(const case_config& c, const std::vector<std::string>& plugin_path) {
  experiment whole;
  whole.plugin_path = plugin_path;
  std::string text, section;
  for (const schema_key& key : schema()) {
    if (key.section() == "report") continue;
    const json value = read(key, whole, c);
    if (key.section() != section) {
      section = key.section();
      text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", section);
    }
    // Leave out a key that is not set, and has no value that means so (without a dataset there is no format).
    if (!accept(key, value)) continue;
    // Leave out a default without effect: a run of this file would print a notice about that key.
    if (!has_effect(key.path(), c) && value == read(key, {}, {})) continue;
    const bool time = key.rule.unit == RG_UNIT_NANOSECONDS && value.is_number();
    text += fmt::format("{} = {}\n", key.leaf(),
                        toml_literal(time ? json(exact_nanoseconds(value.get<std::int64_t>())) : value));
    if (const auto s = find_plugin_section(section))
      for (const auto& [name, parameter] : choice_of(c, *s).parameters)
        text += fmt::format("{} = {}\n", name, toml_literal(parameter));
  }
  return text;
}

json to_json(const case_config& c) {
  json j = json::object();
  for (const schema_key& key : schema())
    if (of_case(key)) j[key.section()][key.leaf()] = read(key, {}, c);
  for (const plugin_section s : plugin_sections) j[std::string(name_of(s))]["parameters"] = choice_of(c, s).parameters;
  j["swept"] = c.swept;
  return j;
}

case_config case_from_json(const json& j) {
  try {
    case_config c;
    experiment whole;
    for (const schema_key& key : schema())
      if (of_case(key)) assign(key, j.at(key.section()).at(key.leaf()), whole, c);
    for (const plugin_section s : plugin_sections)
      j.at(std::string(name_of(s))).at("parameters").get_to(choice_of(c, s).parameters);
    j.at("swept").get_to(c.swept);
    return c;
  } catch (const json::exception& e) {
    throw failure(exit_code::run, fmt::format("a case that this version cannot read: {}", e.what()));
  }
}

} // namespace regatta

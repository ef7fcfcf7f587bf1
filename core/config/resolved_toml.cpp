// SPDX-License-Identifier: Apache-2.0
#include "config/effect.hpp"
#include "config/load.hpp"
#include "config/schema_rules.hpp"
#include "config/toml_document.hpp"
#include "text/values.hpp"

#include <fmt/format.h>

namespace regatta {

using nlohmann::json;
std::string resolved_toml(const case_config& c, const std::vector<std::string>& plugin_path) {
  experiment whole;
  whole.plugin_path = plugin_path;
  std::string text, section;
  for (const schema_key& key : schema()) {
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

} // namespace regatta

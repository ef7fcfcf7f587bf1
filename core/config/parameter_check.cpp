// SPDX-License-Identifier: Apache-2.0
#include "config/parameter_check.hpp"

#include "base/text.hpp"
#include "registry/parameters.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace regatta {
namespace {

std::string unknown_parameter(const catalogue& components, kind s, const std::string& id,
                              const std::vector<rg_param>& table, const std::string& name) {
  std::vector<std::string> names;
  for (const rg_param& r : table) names.emplace_back(r.name);
  std::string text = fmt::format("{} \"{}\" has no such parameter", name_of(s), id);
  if (const std::string hint = did_you_mean(name, names); !hint.empty()) return text + hint;
  std::string home;
  for (const std::string& other : components.ids(s)) {
    const auto* parameters = components.parameters(s, other);
    if (parameters && std::any_of(parameters->begin(), parameters->end(), [&](auto& r) { return name == r.name; }))
      home += fmt::format("{}[{}.{}]", home.empty() ? "" : " or ", name_of(s), other);
  }
  if (!home.empty()) return fmt::format("{}; if it is meant for another, write it under {}", text, home);
  return names.empty() ? text + ": it has none" : fmt::format("{}; it has {}", text, join(names));
}

} // namespace

std::string near_choice(const rg_param& parameter, const toml_node& node) {
  return node.scalar.is_string() ? did_you_mean(node.scalar.get<std::string>(), choices_of(parameter)) : "";
}

std::optional<parameter_problem> check_parameter(const catalogue& components, kind s, const std::string& id,
                                                 const std::string& name, const toml_node& value) {
  const std::vector<rg_param>& table = *components.parameters(s, id);
  const auto parameter = std::find_if(table.begin(), table.end(), [&](const rg_param& r) { return name == r.name; });
  if (parameter == table.end()) return parameter_problem{true, unknown_parameter(components, s, id, table, name)};
  if (accept(*parameter, value_of(value))) return {};
  return parameter_problem{false, fmt::format("expected {}, got {}{}", expectation(*parameter), quoted(value),
                                              near_choice(*parameter, value))};
}

} // namespace regatta

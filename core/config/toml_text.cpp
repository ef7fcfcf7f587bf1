// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "config/toml_document.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace regatta {
namespace {

std::string key_text(const std::string& name) {
  constexpr std::string_view bare = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  return !name.empty() && name.find_first_not_of(bare) == std::string::npos ? name : toml_literal(name);
}

bool is_list_of_tables(const toml_node& node) {
  return node.is == toml_node::kind::array && !node.items.empty() &&
         std::ranges::all_of(node.items, [](const toml_node& n) { return n.is == toml_node::kind::table; });
}

std::string inline_text(const toml_node& node) {
  if (node.is == toml_node::kind::scalar) return toml_literal(node.scalar);
  std::vector<std::string> parts;
  for (const toml_node& item : node.items) parts.push_back(inline_text(item));
  for (const auto& [name, member] : node.members)
    parts.push_back(fmt::format("{} = {}", key_text(name), inline_text(member)));
  const bool table = node.is == toml_node::kind::table;
  return fmt::format("{}{}{}", table ? "{ " : "[", join(parts), table ? " }" : "]");
}

// Returns a section: its values, then its lists of tables as [[path.name]].
std::string section_text(const std::string& path, const toml_node& table, bool of_list) {
  std::string text = of_list ? fmt::format("[[{}]]\n", path) : fmt::format("[{}]\n", path), lists;
  for (const auto& [name, member] : table.members)
    if (!of_list && is_list_of_tables(member))
      for (const toml_node& item : member.items) lists += "\n" + section_text(path + "." + key_text(name), item, true);
    else
      text += fmt::format("{} = {}\n", key_text(name), inline_text(member));
  return text + lists;
}

} // namespace

std::string toml_text(const toml_node& table) {
  std::string values, sections;
  for (const auto& [name, member] : table.members)
    if (member.is == toml_node::kind::table)
      sections += "\n" + section_text(key_text(name), member, false);
    else if (is_list_of_tables(member))
      for (const toml_node& item : member.items) sections += "\n" + section_text(key_text(name), item, true);
    else
      values += fmt::format("{} = {}\n", key_text(name), inline_text(member));
  const std::string text = values + sections;
  return text.starts_with('\n') ? text.substr(1) : text;
}

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "config/cases.hpp"
#include "config/load.hpp"
#include "config/plugin_files.hpp"
#include "config/schema_rules.hpp"
#include "config/settings.hpp"
#include "config/toml_document.hpp"

#include <algorithm>

namespace regatta {
namespace {

toml_node table_node() {
  toml_node node;
  node.is = toml_node::kind::table;
  return node;
}

toml_node scalar_node(nlohmann::json value) {
  toml_node node;
  node.scalar = std::move(value);
  return node;
}

toml_node list_node(const std::vector<std::string>& texts) {
  toml_node node;
  node.is = toml_node::kind::array;
  for (const std::string& text : texts) node.items.push_back(scalar_node(text));
  return node;
}

// Stores a value at "section.table.key", and makes the tables on the way.
void put(toml_node& root, const std::string& path, toml_node value) {
  toml_node* table = &root;
  const std::vector<std::string> parts = split(path, '.');
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    if (!table->find(parts[i])) table->members.push_back({parts[i], table_node()});
    table = table->find(parts[i]);
  }
  table->members.push_back({parts.back(), std::move(value)});
}

// Returns the value with an absolute path, if the key is one of paths.
toml_node with_absolute_path(const std::string& key, const setting& s, const folders& start) {
  toml_node node = s.node;
  if ((key == "data.path" || key == "data.evaluation_path" || key == "data.vocabulary") && node.scalar.is_string() &&
      node.scalar != "")
    node.scalar = absolute_path(node.scalar.get<std::string>(), s.from, start);
  if (constexpr std::string_view folder = "{folder}"; key == "data.producer" && node.scalar.is_string()) {
    std::string command = node.scalar;
    if (const auto at = command.find(folder); at != std::string::npos)
      node.scalar = command.replace(at, folder.size(), absolute_path("", s.from, start));
  }
  return node;
}

// A parameter under [strategy] that --set gives takes precedence over that of the file under [strategy.ID]; within one
// file it would not.
bool is_hidden(const std::string& path, const setting& s, const settings& all) {
  const std::vector<std::string> parts = split(path, '.');
  if (s.from_layer != setting::layer::file || parts.size() != 3 || !find_plugin_section(parts[0])) return false;
  const auto given = all.values.find(parts[0] + "." + parts[2]);
  return given != all.values.end() && given->second.from_layer == setting::layer::set;
}

// Each axis as a table of [[sweep.zip]], which keeps their order.
toml_node sweep_node(const settings& all, const folders& start) {
  toml_node zips, sweep = table_node();
  zips.is = toml_node::kind::array;
  for (const axis& a : all.axes) {
    toml_node& zip = zips.items.emplace_back(table_node());
    for (const swept_key& key : a.keys) {
      toml_node values;
      values.is = toml_node::kind::array;
      for (const setting& s : key.values) values.items.push_back(with_absolute_path(key.path, s, start));
      zip.members.push_back({key.path, std::move(values)});
    }
  }
  sweep.members.push_back({"zip", std::move(zips)});
  return sweep;
}

// Returns a claim as [[claim]] has it; members that are null are left out.
toml_node claim_node(const nlohmann::json& value, const folders& start, const std::string& key = "") {
  toml_node node;
  if (value.is_object()) {
    node = table_node();
    for (const auto& [name, member] : value.items())
      if (!member.is_null()) node.members.push_back({name, claim_node(member, start, name)});
  } else if (value.is_array()) {
    node.is = toml_node::kind::array;
    for (const nlohmann::json& item : value) node.items.push_back(claim_node(item, start));
  } else {
    node = with_absolute_path(key, {scalar_node(value), {}}, start);
  }
  return node;
}

} // namespace

std::string whole_toml(const std::filesystem::path& file, const overrides& o, const catalogue& components,
                       const experiment& loaded) {
  diagnostics none("");
  settings all = collect(parse_toml(read_text(file)), o, components, none);
  const folders start = folders_of(file);
  replace_plugin_files(all, start, components, none);
  toml_node root = table_node();
  for (const auto& [path, s] : all.values)
    if (path != "experiment.plugin_path" && !is_hidden(path, s, all))
      put(root, path, with_absolute_path(path, s, start));
  if (!loaded.plugin_path.empty()) put(root, "experiment.plugin_path", list_node(loaded.plugin_path));
  if (!all.values.contains("experiment.name")) put(root, "experiment.name", scalar_node(loaded.name));
  if (!all.axes.empty()) root.members.push_back({"sweep", sweep_node(all, start)});
  if (all.report) root.members.push_back({"report", *all.report});
  if (!loaded.claims.empty()) root.members.push_back({"claim", claim_node(loaded.claims, start)});
  return toml_text(root);
}

} // namespace regatta

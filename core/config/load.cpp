// SPDX-License-Identifier: Apache-2.0
#include "config/load.hpp"

#include "base/text.hpp"
#include "config/cases.hpp"
#include "config/plugin_files.hpp"
#include "config/settings.hpp"

namespace regatta {
namespace {

folders folders_of(const std::filesystem::path& file) {
  folders f;
  std::error_code gone; // the working directory was removed: relative paths stay relative
  f.current = std::filesystem::current_path(gone);
  f.file = (f.current / file).parent_path();
  return f;
}

// The name of the file, with characters that do not belong into the name of a folder replaced or dropped.
std::string default_name(const std::filesystem::path& file) {
  std::string name = file.stem().string().substr(0, 100);
  for (char& c : name)
    if (static_cast<unsigned char>(c) <= 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '-';
  name.erase(0, name.find_first_not_of('.'));
  return name.empty() ? "experiment" : name;
}

} // namespace

experiment load_experiment(const std::filesystem::path& file, const overrides& o, const catalogue& components,
                           const std::optional<std::string>& text) {
  experiment out;
  out.file = file.string();
  out.name = default_name(file);
  diagnostics wrong(one_line(out.file));
  toml_node root;
  try {
    root = parse_toml(text ? *text : read_text(file));
  } catch (const toml_error& e) {
    wrong.add({{}, e.at()}, {}, e.what());
    wrong.raise({});
  }
  settings all = collect(root, o, components, wrong);
  const folders start = folders_of(file);
  const std::vector<std::string> files = plugin_files(all, start);
  replace_plugin_files(all, start, components, wrong);
  make_cases(all, components, start, out, wrong);
  out.plugin_path.insert(out.plugin_path.begin(), files.begin(), files.end());
  if (wrong.none()) return out;
  std::vector<std::string> notes;
  if (wrong.missing())
    for (const std::string& reason : components.unusable) notes.push_back("note: not loaded: " + reason);
  wrong.raise(notes);
}

std::vector<std::string> plugin_path_of(const std::filesystem::path& file, const overrides& o,
                                        const std::optional<std::string>& text) {
  const catalogue none{
      [](kind) { return std::vector<std::string>(); }, [](kind, std::string_view) { return nullptr; }, {}, {}};
  diagnostics reported_later("");
  toml_node root;
  try {
    root = parse_toml(text ? *text : read_text(file));
  } catch (const toml_error&) { // load_experiment() reports it
  }
  const settings all = collect(root, o, none, reported_later);
  const folders start = folders_of(file);
  std::vector<std::string> path;
  std::error_code error;
  for (const std::string& plugin : plugin_files(all, start))
    if (std::filesystem::exists(plugin, error)) path.push_back(plugin);
  if (const auto given = all.values.find("experiment.plugin_path"); given != all.values.end())
    if (const auto value = accept(*find_key(given->first), value_of(given->second.node)))
      for (const auto& folder : *value)
        path.push_back(absolute_path(folder.get<std::string>(), given->second.from, start));
  return path;
}

catalogue catalogue_of(const registry& r) {
  catalogue c;
  c.ids = [&r](kind k) {
    std::vector<std::string> ids;
    for (const component& one : r.components())
      if (one.kind == k) ids.push_back(one.id);
    return ids;
  };
  c.parameters = [&r](kind k, std::string_view id) -> const std::vector<rg_param>* {
    for (const component& one : r.components())
      if (one.kind == k && one.id == id) return &one.parameters;
    return nullptr;
  };
  c.ids_in = [&r](kind k, const std::filesystem::path& file) {
    std::vector<std::string> ids;
    std::error_code error;
    for (const component& one : r.components())
      if (one.kind == k && std::filesystem::equivalent(one.file, file, error)) ids.push_back(one.id);
    return ids;
  };
  for (const unusable& u : r.failures()) c.unusable.push_back(u.file.string() + ": " + u.reason);
  return c;
}

} // namespace regatta

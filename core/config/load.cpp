// SPDX-License-Identifier: Apache-2.0
#include "config/load.hpp"

#include "base/text.hpp"
#include "config/cases.hpp"
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

experiment load_experiment(const std::filesystem::path& file, const overrides& o, const catalogue& components) {
  experiment out;
  out.file = file.string();
  out.name = default_name(file);
  diagnostics wrong(one_line(out.file));
  toml_node root;
  try {
    root = parse_toml(read_text(file));
  } catch (const toml_error& e) {
    wrong.add({{}, e.at()}, {}, e.what());
    wrong.raise({});
  }
  const settings all = collect(root, o, components, wrong);
  make_cases(all, components, folders_of(file), out, wrong);
  if (wrong.none()) return out;
  std::vector<std::string> notes;
  if (wrong.missing())
    for (const std::string& reason : components.unusable) notes.push_back("note: not loaded: " + reason);
  wrong.raise(notes);
}

std::vector<std::string> plugin_path_of(const std::filesystem::path& file, const overrides& o) {
  constexpr auto path = "experiment.plugin_path";
  const folders start = folders_of(file);
  toml_node given;
  origin from;
  try {
    const toml_node root = parse_toml(read_text(file));
    if (const toml_node* section = root.find("experiment"))
      if (const toml_node* value = section->find("plugin_path")) given = *value;
  } catch (const toml_error&) {
    // load_experiment reports this error.
  }
  for (const std::string& text : o.set)
    if (auto parsed = parse_set(text); parsed && parsed->first == path) {
      given = parsed->second.node;
      from.option = "--set";
    }
  std::vector<std::string> folders;
  if (const auto value = accept(*find_key(path), value_of(given)))
    for (const auto& folder : *value) folders.push_back(absolute_path(folder.get<std::string>(), from, start));
  return folders;
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
  for (const unusable& u : r.failures()) c.unusable.push_back(u.file.string() + ": " + u.reason);
  return c;
}

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#include "config/plugin_files.hpp"

#include "base/text.hpp"
#include "experiment/schema.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

namespace regatta {
namespace {

bool is_file(const nlohmann::json& value) {
  if (!value.is_string()) return false;
  const auto& text = value.get_ref<const std::string&>();
  return text.find('/') != std::string::npos || text.ends_with(".so");
}

// Calls f(kind, key, setting) for every value that is a file.
template <class Settings, class F> void for_each_file(Settings& all, F&& f) {
  for (const kind k : plugin_sections) {
    const std::string key = std::string(name_of(k)) + ".plugin";
    const auto visit = [&](auto& s) {
      if (is_file(value_of(s.node))) f(k, key, s);
    };
    if (const auto given = all.values.find(key); given != all.values.end()) visit(given->second);
    for (auto& axis : all.axes)
      for (auto& swept : axis.keys)
        if (swept.path == key)
          for (auto& value : swept.values) visit(value);
  }
}

std::string file_of(const setting& s, const folders& start) {
  return absolute_path(value_of(s.node).get<std::string>(), s.from, start);
}

// Returns why the file has no usable component of this kind.
std::string reason(const std::string& file, const catalogue& components) {
  std::error_code error;
  if (!std::filesystem::exists(file, error))
    return "which is not there; paths start at the file's folder, those of --set at the working directory";
  for (const std::string& why : components.unusable)
    if (why.starts_with(file + ": ")) return "which cannot be used: " + why.substr(file.size() + 2);
  return "which has none, or only one that another plugin with the same id hides (see `regatta describe`)";
}

} // namespace

std::vector<std::string> plugin_files(const settings& all, const folders& start) {
  std::vector<std::string> files;
  for_each_file(all, [&](kind, const std::string&, const setting& s) {
    const std::string file = file_of(s, start);
    if (std::ranges::find(files, file) == files.end()) files.push_back(file);
  });
  return files;
}

void replace_plugin_files(settings& all, const folders& start, const catalogue& components, diagnostics& wrong) {
  for_each_file(all, [&](kind k, const std::string& key, setting& s) {
    const std::string file = file_of(s, start);
    const std::vector<std::string> ids = components.ids_in(k, file);
    if (ids.size() == 1) {
      s.node.scalar = ids.front();
      return;
    }
    all.spoiled.insert(key);
    const std::string expected =
        fmt::format("expected a file with one {}, got {}, ", name_of(k), toml_literal(one_line(file)));
    if (ids.empty())
      wrong.add_missing(s.from, key, expected + reason(file, components));
    else
      wrong.add(s.from, key,
                expected + fmt::format("which has {}: name one of them here, and the file in experiment.plugin_path",
                                       join(ids)));
  });
}

} // namespace regatta

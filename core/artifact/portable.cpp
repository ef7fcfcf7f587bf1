// SPDX-License-Identifier: Apache-2.0
#include "artifact/portable.hpp"

#include "base/text.hpp"
#include "config/toml_document.hpp"
#include "files/archive.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include <fmt/format.h>

namespace regatta {
namespace {

const std::vector<std::string> data_paths = {"data.path", "data.evaluation_path", "data.vocabulary"};

// Calls f(key, value) for every scalar: key "train.batch" also within sweeps and sides of claims, and elements of a
// list one by one.
void for_each_value(toml_node& node, const std::string& path,
                    const std::function<void(const std::string&, toml_node&)>& f) {
  if (node.is == toml_node::kind::scalar) return f(path, node);
  for (toml_node& item : node.items) for_each_value(item, path, f);
  // Below these, a name is a key of the experiment.
  const bool begins = path.empty() || path == "sweep.zip" || path == "claim.left" || path == "claim.right";
  for (auto& [name, member] : node.members) {
    const bool swept = path == "sweep" && name != "zip";
    for_each_value(member, begins || swept ? name : path + "." + name, f);
  }
}

bool is_data_path(const std::string& key) {
  return std::ranges::count(data_paths, key) > 0;
}

bool is_plugin(const std::string& key) {
  return key == "model.plugin" || key == "strategy.plugin" || key == "transport.plugin";
}

} // namespace

std::string portable_toml(const std::string& whole) {
  toml_node root = parse_toml(whole);
  if (toml_node* experiment = root.find("experiment"))
    std::erase_if(experiment->members, [](const toml_member& m) { return m.name == "plugin_path"; });
  std::map<std::string, std::string> names; // by path
  std::set<std::string> taken;
  for_each_value(root, "", [&](const std::string& key, toml_node& value) {
    if (!is_data_path(key) || !value.scalar.is_string() || value.scalar == "") return;
    const std::string path = value.scalar;
    if (!names.contains(path)) {
      std::filesystem::path whole_path = std::filesystem::path(path).lexically_normal();
      if (!whole_path.has_filename()) whole_path = whole_path.parent_path();
      const std::string name = "data/" + whole_path.filename().string();
      std::string free = name;
      for (int number = 2; !taken.insert(free).second; ++number) free = fmt::format("{}-{}", name, number);
      names[path] = free;
    }
    value.scalar = names[path];
  });
  return toml_text(root);
}

std::vector<std::string> unsafe_in(const std::string& toml, const std::vector<std::string>& set) {
  toml_node root;
  try {
    root = parse_toml(toml);
  } catch (const toml_error& e) {
    return {fmt::format("experiment.toml:{}:{}: {}", e.at().line, e.at().column, e.what())};
  }
  std::vector<std::string> found;
  const auto add = [&](const toml_node& value, const std::string& key, const std::string& why) {
    found.push_back(
        fmt::format("experiment.toml:{}:{}: {} = {}: {}", value.at.line, value.at.column, key, quoted(value), why));
  };
  for_each_value(root, "", [&](const std::string& key, toml_node& value) {
    const std::string text = value.scalar.is_string() ? value.scalar.get<std::string>() : "";
    if (key == "experiment.plugin_path") add(value, key, "an artifact must not name plugins outside of its folder");
    if (is_plugin(key) && (text.find('/') != std::string::npos || text.ends_with(".so")))
      add(value, key, "expected the id of a plugin, not a file");
    if (is_data_path(key) && !text.empty() && !is_archive_name(text))
      add(value, key, "expected a path within the folder of the artifact");
    const bool replaced =
        std::ranges::any_of(set, [](const std::string& s) { return s.starts_with("data.producer="); });
    if (key == "data.producer" && !text.empty() && !replaced)
      add(value, key, "a command of the artifact is not run; give your own with --set data.producer=COMMAND");
  });
  return found;
}

} // namespace regatta

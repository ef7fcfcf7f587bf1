// SPDX-License-Identifier: Apache-2.0
#include "report/common_settings.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "report/fields.hpp"

namespace regatta {
namespace {

using nlohmann::json;

const char* const always_told[] = {"k", "sparsity"}; // strategies' parameters that are listed at their defaults, too

std::string setting_text(const json& value) {
  if (value.is_null() || value == "") return "";
  if (!value.is_array()) return plain_text(value);
  std::vector<std::string> texts;
  for (const json& item : value) texts.push_back(plain_text(item));
  return "[" + join(texts) + "]";
}

// Returns a member that is an object; an empty object if there is none.
json object_at(const json& from, const std::string& name) {
  const json found = from.value(name, json());
  return found.is_object() ? found : json::object();
}

} // namespace

common_settings::common_settings(const json& result)
    : result_(result), context_(result.at("context")), varying_(swept_keys(result)) {}

bool common_settings::varies(const std::string& key) const {
  return std::find(varying_.begin(), varying_.end(), key) != varying_.end();
}

std::string common_settings::text(const std::string& key) const {
  if (varies(key)) return "";
  const json nothing_ran = {{"case", json::object()}};
  const json& entries = result_.at("results");
  return setting_text(field(result_, entries.empty() ? nothing_ran : entries.front(), key));
}

std::vector<common_settings::named_text> common_settings::given(const std::string& section) const {
  std::vector<named_text> texts;
  const json all = object_at(object_at(context_, "given"), section);
  for (const auto& [name, value] : all.items())
    if (!varies(section + "." + name)) texts.emplace_back(name, setting_text(value));
  return texts;
}

std::vector<common_settings::named_text> common_settings::parameters(const std::string& section) const {
  std::vector<named_text> texts;
  const std::string only = text(section + ".plugin");
  const auto add = [&](const std::string& id, const std::string& name, const json& value) {
    if (varies(section + "." + name) || varies(section + "." + id + "." + name)) return;
    if (only.empty() || id == only) texts.emplace_back(only.empty() ? id + "." + name : name, setting_text(value));
  };
  const json given = object_at(object_at(context_, "given"), section);
  for (const auto& [id, parameters] : given.items())
    if (parameters.is_object())
      for (const auto& [name, value] : parameters.items()) add(id, name, value);
  if (section != "strategy") return texts;
  const json sweep = object_at(context_, "experiment").value("sweep", json::array());
  const auto swept = [&](const std::string& key) { // over one value: swept_alike() lists it
    return std::any_of(sweep.begin(), sweep.end(), [&](const json& axis) { return axis.value("key", "") == key; });
  };
  for (const json& plugin : context_.value("plugins", json::array())) {
    if (plugin.value("kind", "") != section) continue;
    const std::string id = plugin.value("id", "");
    const json all = object_at(plugin, "parameters");
    for (const char* name : always_told)
      if (all.contains(name) && !object_at(given, id).contains(name) &&
          !swept(fmt::format("{}.{}.{}", section, id, name)))
        add(id, name, all[name]);
  }
  return texts;
}

std::vector<common_settings::named_text> common_settings::swept_alike(const std::vector<std::string>& shown) const {
  std::vector<named_text> texts;
  const json given = object_at(context_, "given");
  for (const json& axis : object_at(context_, "experiment").value("sweep", json::array())) {
    const std::string key = axis.value("key", "");
    const std::size_t dot = std::min(key.find('.'), key.size());
    if (varies(key) || std::find(shown.begin(), shown.end(), key) != shown.end()) continue;
    if (dot < key.size() && object_at(given, key.substr(0, dot)).contains(key.substr(dot + 1))) continue;
    for (const json& entry : result_.at("results"))
      if (entry.at("case").contains(key)) {
        texts.emplace_back(key, setting_text(entry.at("case")[key]));
        break;
      }
  }
  return texts;
}

std::vector<std::string> common_settings::plugins(const std::string& kind) const {
  std::vector<std::string> ids;
  for (const json& plugin : context_.value("plugins", json::array()))
    if (plugin.value("kind", "") == kind) ids.push_back(plain_text(plugin.value("id", json())));
  return ids;
}

} // namespace regatta

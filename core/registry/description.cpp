// SPDX-License-Identifier: Apache-2.0
#include "registry/description.hpp"

#include "base/json_members.hpp"

#include <concepts>
#include <type_traits>

#include <nlohmann/json.hpp>

namespace regatta {
namespace {

using nlohmann::json;

json text_or_null(const char* text) {
  return text ? json(text) : json();
}

json to_json(const rg_param& p) {
  json choices;
  for (auto c = p.choices; c && *c; ++c) choices.push_back(*c);
  return {{"type", p.type},
          {"unit", p.unit},
          {"name", text_or_null(p.name)},
          {"help", text_or_null(p.help)},
          {"default", text_or_null(p.default_value)},
          {"min", p.min},
          {"max", p.max},
          {"choices", choices}};
}

rg_param param_from_json(const json& j, description_texts& texts) {
  const auto keep = [&](const json& text) -> const char* {
    return text.is_null() ? nullptr : texts.texts.emplace_back(text.get<std::string>()).c_str();
  };
  rg_param p{};
  p.struct_size = sizeof p;
  p.type = j.at("type");
  p.unit = j.at("unit");
  p.name = keep(j.at("name"));
  p.help = keep(j.at("help"));
  p.default_value = keep(j.at("default"));
  p.min = j.at("min");
  p.max = j.at("max");
  if (j.at("choices").is_null()) return p;
  auto& list = texts.lists.emplace_back();
  for (const json& choice : j.at("choices")) list.push_back(keep(choice));
  list.push_back(nullptr);
  p.choices = list.data();
  return p;
}

} // namespace

// The members of a component that are plain values; `file` and the functions are left out.
template <class C, class Visit>
requires std::same_as<std::remove_const_t<C>, component>
void each_member(C& c, Visit&& visit) {
  visit("id", c.id);
  visit("summary", c.summary);
  visit("plugin", c.plugin_name);
  visit("version", c.plugin_version);
  visit("is_graph", c.is_graph);
  visit("evaluates", c.evaluates);
  visit("has_devices", c.has_devices);
  visit("launcher", c.launcher);
  visit("memory", c.executor.memory);
  visit("device", c.device);
}

json to_json(const loaded_plugin& plugin) {
  json all = json::array();
  for (const component& c : plugin.components) {
    json& one = all.emplace_back(members_to_json(c));
    one["kind"] = static_cast<int>(c.kind);
    one["parameters"] = json::array();
    for (const rg_param& p : c.parameters) one["parameters"].push_back(to_json(p));
  }
  return {{"components", all}, {"unknown", plugin.unknown}};
}

loaded_plugin plugin_from_json(const json& j, const std::filesystem::path& file, description_texts& texts) {
  loaded_plugin plugin;
  for (const json& one : j.at("components")) {
    component c{};
    take_members(one, c);
    c.kind = static_cast<kind>(one.at("kind").get<int>());
    c.file = file;
    for (const json& p : one.at("parameters")) c.parameters.push_back(param_from_json(p, texts));
    plugin.components.push_back(std::move(c));
  }
  plugin.unknown = j.at("unknown").get<std::vector<std::string>>();
  return plugin;
}

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#include "registry/description.hpp"

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

json to_json(const loaded_plugin& plugin) {
  json all = json::array();
  for (const component& c : plugin.components) {
    json parameters = json::array();
    for (const rg_param& p : c.parameters) parameters.push_back(to_json(p));
    all.push_back({{"kind", static_cast<int>(c.kind)},
                   {"id", c.id},
                   {"summary", c.summary},
                   {"plugin", c.plugin_name},
                   {"version", c.plugin_version},
                   {"parameters", parameters},
                   {"is_graph", c.is_graph},
                   {"evaluates", c.evaluates},
                   {"has_devices", c.has_devices},
                   {"launcher", c.launcher},
                   {"memory", c.executor.memory},
                   {"device", c.device}});
  }
  return {{"components", all}, {"unknown", plugin.unknown}};
}

loaded_plugin plugin_from_json(const json& j, const std::filesystem::path& file, description_texts& texts) {
  loaded_plugin plugin;
  for (const json& one : j.at("components")) {
    component c{};
    c.kind = static_cast<kind>(one.at("kind").get<int>());
    c.id = one.at("id");
    c.summary = one.at("summary");
    c.plugin_name = one.at("plugin");
    c.plugin_version = one.at("version");
    c.file = file;
    for (const json& p : one.at("parameters")) c.parameters.push_back(param_from_json(p, texts));
    c.is_graph = one.at("is_graph");
    c.evaluates = one.at("evaluates");
    c.has_devices = one.at("has_devices");
    c.launcher = one.at("launcher");
    c.executor.memory = one.at("memory");
    c.device = one.at("device");
    plugin.components.push_back(std::move(c));
  }
  plugin.unknown = j.at("unknown").get<std::vector<std::string>>();
  return plugin;
}

} // namespace regatta

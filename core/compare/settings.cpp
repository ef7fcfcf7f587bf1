// SPDX-License-Identifier: Apache-2.0
#include "compare/settings.hpp"

#include "report/fields.hpp"
#include "results/compared.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace regatta {
namespace {

using nlohmann::json;
using settings = std::map<std::string, json>;

constexpr const char* plugin_sections[] = {"model", "strategy", "transport"};

// Adds the members of a section, whose own sections have dotted names ("optimizer.schedule.name").
void flatten(const json& value, const std::string& path, settings& to) {
  if (!value.is_object()) {
    to[path] = value;
    return;
  }
  for (const auto& [name, member] : value.items()) flatten(member, name == "parameters" ? path : path + "." + name, to);
}

std::set<std::string> swept_in(const json& document) {
  std::set<std::string> keys;
  for (const json& entry : document.at("results"))
    for (const auto& [key, value] : entry.at("case").items()) keys.insert(key);
  return keys;
}

// Returns what differs between the machines that decides speed.
std::vector<std::string> machine_differences(const json& a, const json& b) {
  const auto host = [](const json& document) {
    const json hosts = document.at("context").value("hosts", json::array());
    return hosts.empty() ? json::object() : hosts.front();
  };
  std::vector<std::string> found;
  for (const char* member : {"name", "cpu", "cores", "kernel"})
    if (const json x = host(a).value(member, json()), y = host(b).value(member, json()); x != y)
      found.push_back(fmt::format("machine's {}: {} -> {}", member, plain_text(x), plain_text(y)));
  for (const char* member : {"git", "build"})
    if (const json x = a.at("context").value(member, json()), y = b.at("context").value(member, json()); x != y)
      found.push_back(fmt::format("regatta's {}: {} -> {}", member, plain_text(x), plain_text(y)));
  return found;
}

} // namespace

settings settings_of(const json& document, const json& entry) {
  settings all;
  const json experiment = document.at("context").value("experiment", json::object());
  const std::set<std::string> swept = swept_in(document);
  for (const auto& [section, members] : experiment.items()) {
    if (section == "sweep" || section == "report" || !members.is_object()) continue;
    const bool is_plugin =
        std::find(std::begin(plugin_sections), std::end(plugin_sections), section) != std::end(plugin_sections);
    const bool varies = is_plugin && swept.count(section + ".plugin") != 0;
    for (const auto& [name, value] : members.items())
      if (!(varies && name == "parameters")) flatten(value, name == "parameters" ? section : section + "." + name, all);
  }
  for (const char* name : {"experiment.name", "experiment.file"}) all.erase(name);
  for (const auto& [key, value] : entry.at("case").items()) all[key] = value;
  return all;
}

std::vector<std::string> differences_of(const json& document_a, const json& a, const json& document_b, const json& b) {
  std::vector<std::string> found;
  const settings of_a = settings_of(document_a, a), of_b = settings_of(document_b, b);
  std::set<std::string> keys;
  for (const auto* side : {&of_a, &of_b})
    for (const auto& [key, value] : *side) keys.insert(key);
  for (const std::string& key : keys) {
    const auto x = of_a.find(key), y = of_b.find(key);
    const json before = x == of_a.end() ? json() : x->second, after = y == of_b.end() ? json() : y->second;
    if (before != after) found.push_back(fmt::format("{}: {} -> {}", key, plain_text(before), plain_text(after)));
  }
  const json marks = a.value("fingerprint", json::object()), others = b.value("fingerprint", json::object());
  std::vector<std::string> parts;
  for (const auto& [part, mark] : marks.items())
    if (mark != others.value(part, json())) parts.push_back(part);
  for (const std::string& part : parts) found.push_back(fmt::format("fingerprint: {} differs", part));
  for (std::string& text : machine_differences(document_a, document_b)) found.push_back(std::move(text));
  return found;
}

std::vector<std::string> parts_apart(const json& a, const json& b) {
  const json of_a = a.value("fingerprint", json::object()), of_b = b.value("fingerprint", json::object());
  std::vector<std::string> parts;
  for (const std::string& part : comparable_parts())
    if (of_a.value(part, json()) != of_b.value(part, json())) parts.push_back(part);
  return parts;
}

std::vector<std::pair<std::size_t, std::size_t>> matching_cases(const json& a, const json& b) {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  const json &in_a = a.at("results"), &in_b = b.at("results");
  if (in_a.size() == 1 && in_b.size() == 1) return {{0, 0}};
  std::set<std::string> keys = swept_in(a);
  keys.merge(swept_in(b));
  const auto values = [&](const json& document, const json& entry) {
    const settings all = settings_of(document, entry);
    std::vector<json> chosen;
    for (const std::string& key : keys) chosen.push_back(all.count(key) ? all.at(key) : json());
    return chosen;
  };
  std::set<std::size_t> taken;
  for (std::size_t i = 0; i < in_a.size(); ++i)
    for (std::size_t k = 0; k < in_b.size(); ++k)
      if (taken.count(k) == 0 && values(a, in_a[i]) == values(b, in_b[k])) {
        pairs.emplace_back(i, k);
        taken.insert(k);
        break;
      }
  return pairs;
}

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#include "report/context.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <ctime>
#include <iterator>
#include <map>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/text.hpp"
#include "experiment/schema.hpp"
#include "report/fields.hpp"
#include "text/values.hpp"

#if __has_include("git_state.hpp")
#include "git_state.hpp"
#endif

// Defined by the build. A build that does not know them leaves them empty, and they are null in the result.
#ifndef REGATTA_VERSION
#define REGATTA_VERSION ""
#endif
#ifndef REGATTA_GIT
#define REGATTA_GIT ""
#endif
#ifndef REGATTA_BUILD_TYPE
#define REGATTA_BUILD_TYPE ""
#endif

namespace regatta {
namespace {

using nlohmann::json;

std::string quoted(const std::string& argument) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) || std::strchr("-_./=:,+@%", c); };
  if (!argument.empty() && std::all_of(argument.begin(), argument.end(), plain)) return argument;
  std::string text = "'";
  for (const char c : argument) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

// Returns each swept key with its distinct values, in the order of the cases.
json sweep_of(const experiment& e) {
  json sweep = json::array();
  for (const std::string& key : e.swept) {
    json values = json::array();
    for (const case_config& c : e.cases)
      for (const auto& [name, value] : c.swept)
        if (name == key && std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
    sweep.push_back({{"key", key}, {"values", std::move(values)}});
  }
  return sweep;
}

// Returns the settings that differ from their defaults, by section; parameters of plugins by the plugin's id, because
// cases may choose several plugins. The result is one of several possible ways to write the experiment.
json given_of(const experiment& e) {
  json given = json::object();
  const case_config defaults;
  for (const schema_key& key : schema()) {
    if (key.leaf() == "plugin" || key.leaf() == "plugin_path" || key.leaf() == "name") continue;
    const json value = read(key, {}, e.cases.at(0));
    if (value == read(key, {}, defaults)) continue;
    const bool time = key.rule.unit == RG_UNIT_NANOSECONDS && value.is_number(); // measure.timeout is text
    given[key.section()][key.leaf()] = time ? json(exact_nanoseconds(value.get<std::int64_t>())) : value;
  }
  for (const kind s : plugin_sections)
    for (const case_config& c : e.cases)
      for (const auto& [name, value] : choice_of(c, s).given)
        given[std::string(name_of(s))][choice_of(c, s).id].emplace(name, value);
  return given;
}

// Returns the experiment without [report], which decides only how its results are shown.
json measured_in(const json& context) {
  json experiment = context.value("experiment", json());
  if (experiment.is_object()) experiment.erase("report");
  return experiment;
}

// Returns a member of an element of a list; null if there is none.
json member_of(const json& element, const char* name) {
  return element.is_object() ? element.value(name, json()) : json();
}

// Returns for example "model mlp" -> SHA-256 of its file.
std::map<std::string, json> plugins_in(const json& context) {
  std::map<std::string, json> sums;
  for (const json& plugin : context.value("plugins", json::array()))
    sums[plain_text(member_of(plugin, "kind")) + " " + plain_text(member_of(plugin, "id"))] =
        member_of(plugin, "sha256");
  return sums;
}

// Returns path -> SHA-256 in every format. Data that could not be read is left out.
std::map<std::string, json> data_in(const json& context) {
  std::map<std::string, json> sums;
  for (const json& set : context.value("data", json::array()))
    if (const json sum = member_of(set, "sha256"); !sum.is_null())
      sums[plain_text(member_of(set, "path"))].push_back(sum);
  return sums;
}

// Leaves out values such as free memory, which do not decide whether two campaigns measure the same thing.
json hosts_in(const json& context) {
  json list = json::array();
  for (const json& host : context.value("hosts", json::array()))
    list.push_back({member_of(host, "name"), member_of(host, "cpu"), member_of(host, "cores")});
  return list;
}

bool same_kind(const json& a, const json& b) {
  return a.type() == b.type() || (a.is_number() && b.is_number());
}

// Returns the path of the first member of `now` that `before` lacks or has with another type; empty: there is none.
// Null matches any type. Lists are compared as far as both have elements.
std::string misshapen(const json& before, const json& now, const std::string& path) {
  if (before.is_null() || now.is_null()) return "";
  if (!same_kind(before, now)) return path;
  if (now.is_array())
    for (std::size_t i = 0; i < before.size() && !now.empty(); ++i)
      if (auto wrong = misshapen(before[i], now[std::min(i, now.size() - 1)], fmt::format("{}[{}]", path, i));
          !wrong.empty())
        return wrong;
  if (now.is_object())
    for (const auto& [key, value] : now.items()) {
      std::string inside = path.empty() ? key : path + "." + key;
      if (!before.contains(key)) return inside;
      if (auto wrong = misshapen(before[key], value, inside); !wrong.empty()) return wrong;
    }
  return "";
}

// Returns the first key whose value has changed or is gone.
std::optional<std::string> difference(const std::map<std::string, json>& before,
                                      const std::map<std::string, json>& now) {
  for (const auto& [key, value] : before)
    if (const auto found = now.find(key); found == now.end() || found->second != value) return key;
  return std::nullopt;
}

} // namespace

json resolved_experiment(const experiment& e) {
  json resolved = to_json(e.cases.at(0));
  resolved.erase("swept");
  resolved["experiment"]["file"] = e.file;
  resolved["sweep"] = sweep_of(e);
  resolved["report"] = e.reports;
  return resolved;
}

json build_of_program() {
  return {{"regatta", text_or_null(REGATTA_VERSION)},
          {"git", text_or_null(REGATTA_GIT)},
          {"build", text_or_null(REGATTA_BUILD_TYPE)}};
}

json make_context(const std::string& command, json hosts, json plugins, const std::vector<std::string>& warnings) {
  json context = build_of_program();
  context.update({{"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
                  {"command", command},
                  {"hosts", std::move(hosts)},
                  {"plugins", std::move(plugins)},
                  {"warnings", warnings}});
  return context;
}

json make_context(const std::string& command, const experiment& e, json hosts, json plugins,
                  const std::vector<std::string>& warnings) {
  json context = make_context(command, std::move(hosts), std::move(plugins), warnings);
  context["experiment"] = resolved_experiment(e);
  context["given"] = given_of(e);
  context["cases"] = e.cases.size();
  return context;
}

std::string resume_conflict(const json& before, const json& now) {
  if (measured_in(before) != measured_in(now)) return "the experiment differs";
  for (const char* member : {"regatta", "git", "build"})
    if (before.value(member, json()) != now.value(member, json())) return "regatta was rebuilt from other sources";
  json shape = now;
  shape.erase("experiment");
  shape["given"] = json::object(); // as it is written, which may be in several ways
  if (const std::string wrong = misshapen(before, shape, ""); !wrong.empty())
    return fmt::format("\"{}\" in the context of its first record is missing or has a value of the wrong type", wrong);
  if (const auto plugin = difference(plugins_in(before), plugins_in(now))) return *plugin + " has another binary";
  if (const auto path = difference(data_in(before), data_in(now))) return "the data of " + *path + " changed";
  if (hosts_in(before) != hosts_in(now)) return "the hosts differ";
  return "";
}

std::string command_line(const std::vector<std::string>& arguments) {
  std::vector<std::string> words;
  std::transform(arguments.begin(), arguments.end(), std::back_inserter(words), quoted);
  return join(words, " ");
}

} // namespace regatta

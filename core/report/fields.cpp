// SPDX-License-Identifier: Apache-2.0
#include "report/fields.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/text.hpp"

namespace regatta {
namespace {

using nlohmann::json;

// Follows a dotted path; null if it leads nowhere. The name of a member may contain dots, such as "schedule.name".
json walk(const json& from, const std::string& path) {
  const json* at = &from;
  for (std::size_t begin = 0; begin <= path.size();) {
    const bool whole = at->is_object() && at->contains(path.substr(begin));
    const std::size_t end = whole ? path.size() : std::min(path.find('.', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    if (!at->is_object() || !at->contains(name)) return nullptr;
    at = &(*at)[name];
    begin = end + 1;
  }
  return at->is_object() && at->contains("median") ? (*at)["median"] : *at;
}

} // namespace

bool has_figures(const json& entry) {
  return entry.at("status") == "ok" || entry.at("status") == "partial";
}

json field(const json& result, const json& entry, const std::string& path) {
  const json& swept = entry.at("case");
  if (swept.contains(path)) return swept[path];
  if (json found = walk(entry, path); !found.is_null()) return found;
  const json experiment = result.at("context").value("experiment", json::object());
  if (json found = walk(experiment, path); !found.is_null()) return found;
  // A plugin's parameters are a separate member there, but stand beside its name in the file.
  const std::size_t dot = path.find('.');
  return dot == std::string::npos ? json() : walk(experiment, path.substr(0, dot) + ".parameters" + path.substr(dot));
}

std::vector<std::string> swept_keys(const json& result) {
  std::vector<std::string> keys;
  const auto add = [&](const std::string& key) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) return;
    const json& entries = result.at("results");
    const auto value = [&](const json& entry) { return entry.at("case").value(key, json()); };
    const bool there =
        std::any_of(entries.begin(), entries.end(), [&](const json& e) { return e["case"].contains(key); });
    const bool varies =
        std::any_of(entries.begin(), entries.end(), [&](const json& e) { return value(e) != value(entries.front()); });
    if (there && varies) keys.push_back(key);
  };
  const json experiment = result.at("context").value("experiment", json::object());
  for (const json& key : experiment.value("sweep", json::array()))
    if (key.is_object() && key.contains("key")) add(key["key"].get<std::string>());
  for (const json& entry : result.at("results"))
    for (const auto& [key, value] : entry.at("case").items()) add(key);
  return keys;
}

std::string plain_text(const json& value) {
  if (value.is_null()) return "-";
  if (value.is_string()) return one_line(value.get<std::string>());
  if (value.is_number_float()) {
    const double number = value;
    return std::abs(number) >= 1000 && std::abs(number) < 1e15 ? fmt::format("{:.0f}", number)
                                                               : fmt::format("{:.4g}", number);
  }
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::vector<std::string> aligned_numbers(const std::vector<json>& values) {
  double smallest = std::numeric_limits<double>::infinity();
  for (const json& v : values)
    if (v.is_number() && v != 0) smallest = std::min(smallest, std::abs(v.get<double>()));
  int digits = smallest >= 1000 ? 0 : smallest >= 10 ? 1 : smallest >= 1 ? 2 : smallest >= 0.1 ? 3 : 4;
  if (smallest < 1e-3) digits = -1; // no fixed number of digits fits all
  std::vector<std::string> texts;
  texts.reserve(values.size());
  for (const json& v : values)
    texts.push_back(v.is_number() && digits >= 0 ? fmt::format("{:.{}f}", v.get<double>(), digits) : plain_text(v));
  return texts;
}

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

} // namespace regatta

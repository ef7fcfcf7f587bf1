// SPDX-License-Identifier: Apache-2.0
#include "page/view.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/text.hpp"
#include "base/units.hpp"
#include "page/chart/look.hpp"
#include "report/fields.hpp"
#include "report/result_checks.hpp"

namespace regatta::page {

using nlohmann::json;

result_view::result_view(const json& result) : result_(result), keys_(swept_keys(result)) {
  for (std::size_t i = 0; i < size(); ++i)
    if (has_figures(entry(i))) measured_.push_back(i);
}

json result_view::value_of(std::size_t index, const std::string& key) const {
  return field(result_, entry(index), key);
}

std::string result_view::name_of(std::size_t index, const std::vector<std::string>& keys) const {
  std::vector<std::string> parts;
  for (const std::string& key : keys) {
    const json value = value_of(index, key);
    if (value.is_null()) continue;
    const bool speaks = key.ends_with(".plugin") && value.is_string(); // "allreduce" needs no "strategy" before it
    parts.push_back(speaks ? plain_text(value) : short_name(key) + " " + plain_text(value));
  }
  return parts.empty() ? "the case" : join(parts);
}

std::string result_view::group_of(std::size_t index, const std::vector<std::string>& keys, std::size_t lines) const {
  if (lines <= colours) return name_of(index, keys);
  for (const std::string& key : keys) {
    std::set<std::string> values;
    for (const std::size_t i : measured_) values.insert(plain_text(value_of(i, key)));
    if (values.size() > 1 && values.size() <= colours) return name_of(index, {key});
  }
  return "";
}

page_table result_view::table_of_cases() const {
  page_table table;
  for (const std::string& key : keys_) {
    const bool number = size() > 0 && value_of(0, key).is_number();
    table.columns.push_back({short_name(key), "", key, number});
  }
  if (keys_.empty()) table.columns.push_back({"case", "", "", false});
  table.keys = table.columns.size();
  for (std::size_t i = 0; i < size(); ++i) {
    page_row& row = table.rows.emplace_back();
    row.of_case = i;
    for (const std::string& key : keys_) row.cells.push_back({plain_text(value_of(i, key)), nullptr, ""});
    if (keys_.empty()) row.cells.push_back({"the case", nullptr, ""});
    if (has_figures(entry(i))) continue;
    row.note = entry(i).at("status").get<std::string>();
    if (const json error = entry(i).value("error", json()); error.is_string())
      row.note += ": " + one_line(error.get<std::string>());
  }
  return table;
}

json value_at(const json& entry, const std::string& path) {
  const json* at = &entry;
  for (const std::string& name : split(path, '.')) {
    if (at->is_array() && !name.empty() && name.find_first_not_of("0123456789") == std::string::npos) {
      const std::size_t index = std::stoul(name);
      if (index >= at->size()) return nullptr;
      at = &(*at)[index];
      continue;
    }
    if (!at->is_object() || !at->contains(name)) return nullptr;
    at = &(*at)[name];
  }
  return *at;
}

std::optional<double> number_at(const json& entry, const std::string& path) {
  const json value = value_at(entry, path);
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

std::optional<std::pair<double, double>> interval_at(const json& entry, const std::string& figure) {
  const auto low = number_at(entry, figure + ".low"), high = number_at(entry, figure + ".high");
  if (!low || !high || number_at(entry, figure + ".n").value_or(0) < 2) return std::nullopt;
  return std::pair(*low, *high);
}

std::optional<std::pair<double, measure>> swept_number(const std::string& key, const json& value) {
  if (value.is_number())
    return std::pair(value.get<double>(), key.ends_with("bandwidth") ? measure::bits_per_second : measure::plain);
  if (!value.is_string()) return std::nullopt;
  const std::string text = value;
  if (const auto bytes = parse_bytes(text)) return std::pair(static_cast<double>(*bytes), measure::bytes);
  if (const auto ns = parse_nanoseconds(text)) return std::pair(static_cast<double>(*ns) * 1e-9, measure::seconds);
  if (const auto rate = parse_bits_per_second(text)) return std::pair(*rate, measure::bits_per_second);
  return std::nullopt;
}

std::string data_attributes(std::size_t of_case, const std::string& path, const json& value) {
  return fmt::format("data-case=\"{}\" data-path=\"{}\" data-value=\"{}\"", of_case, path, value.dump());
}

} // namespace regatta::page

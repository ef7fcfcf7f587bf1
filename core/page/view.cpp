// SPDX-License-Identifier: Apache-2.0
#include "page/view.hpp"

#include <algorithm>

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

std::vector<legend_entry> result_view::legend_of(const std::vector<std::string>& keys) const {
  const auto numbered = [&](auto text_of) {
    std::vector<legend_entry> entries(size());
    std::vector<std::string> texts;
    for (const std::size_t i : measured_) {
      const std::string text = text_of(i);
      const auto found = std::find(texts.begin(), texts.end(), text);
      entries[i] = {text, static_cast<std::size_t>(found - texts.begin())};
      if (found == texts.end()) texts.push_back(text);
    }
    return std::pair(entries, texts.size());
  };
  if (auto [entries, count] = numbered([&](std::size_t i) { return name_of(i, keys); }); count <= colours)
    return entries;
  for (const std::string& key : keys)
    if (auto [entries, count] = numbered([&](std::size_t i) { return name_of(i, {key}); });
        count > 1 && count <= colours)
      return entries;
  return std::vector<legend_entry>(size());
}

std::string result_view::rows_left_out() const {
  if (shows_marks()) return "";
  return fmt::format(" Drawn: the first {} of {} cases; the table has all.", most_rows, measured_.size());
}

page_table result_view::table_of_cases(bool names_cases) const {
  const bool numbered = !shows_marks(), named = names_cases || !numbered;
  page_table table;
  if (numbered || keys_.empty()) table.columns.push_back({"case", "", "", false});
  if (named)
    for (const std::string& key : keys_) table.columns.push_back({short_name(key), "", key, false});
  table.keys = table.columns.size();
  table.of_cases = true;
  for (std::size_t i = 0; i < size(); ++i) {
    page_row& row = table.rows.emplace_back();
    if (numbered || keys_.empty()) row.cells.push_back({std::to_string(i + 1), nullptr, ""});
    if (named)
      for (const std::string& key : keys_) row.cells.push_back({plain_text(value_of(i, key)), nullptr, ""});
    if (has_figures(entry(i))) continue;
    row.note = entry(i).at("status").get<std::string>();
    if (const json error = entry(i).value("error", json()); error.is_string())
      row.note += ": " + one_line(error.get<std::string>());
  }
  return table;
}

const json& repeats_in(const json& entry) {
  static const json none = json::array();
  const auto found = entry.find("repeats");
  return found != entry.end() && found->is_array() ? *found : none;
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

// SPDX-License-Identifier: Apache-2.0
#include "report/pivot_figures.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/text.hpp"
#include "report/fields.hpp"

namespace regatta {
namespace {

using nlohmann::json;
using style = cell_figure::style;

// Returns the case that the entry's ratios refer to; null if there is none, or if there are several.
const json* reference_of(const json& result, const json& entry, const report_request& r,
                         const std::vector<std::string>& fixed_keys) {
  const json* found = nullptr;
  for (const json& other : result.at("results")) {
    if (!has_figures(other)) continue;
    bool alike = true;
    for (const auto& [key, value] : r.ratio_to.items()) alike = alike && field(result, other, key) == value;
    for (const std::string& key : fixed_keys) alike = alike && field(result, other, key) == field(result, entry, key);
    if (!alike) continue;
    if (found) return nullptr;
    found = &other;
  }
  return found;
}

std::string fixed(double value, int decimals) {
  return fmt::format("{:.{}f}", value, decimals);
}

// Returns the number in its format; a plain one without decimals as `plain`.
std::string number_text(const json& value, const cell_figure& f, const std::string& plain) {
  if (!value.is_number()) return plain_text(value);
  const double number = value;
  switch (f.is) {
  case style::percentage: return fixed(100 * number, f.decimals < 0 ? 1 : f.decimals) + " %";
  case style::ratio: return fixed(number, f.decimals < 0 ? 2 : f.decimals);
  case style::number: break;
  }
  return f.decimals < 0 ? plain : fixed(number, f.decimals);
}

// Returns a number with the digits that it was published with.
std::string published_number(const json& value, const cell_figure& f) {
  if (value.is_string()) return one_line(value.get<std::string>());
  if (!value.is_number() || f.decimals >= 0) return number_text(value, f, "");
  const double number = value;
  return f.is == style::percentage ? fmt::format("{:.4g} %", 100 * number) : fmt::format("{}", number);
}

// Returns the published number behind each figure of a cell. A ratio that is computed has none, and that of a cell with
// nothing else the number to divide.
std::vector<json> published_values(const report_request& r, const published_row& row, const std::string& column) {
  const json given = row.values.value(column, json());
  const json list = given.is_array() ? given : json::array({given});
  std::vector<json> values;
  std::size_t next = 0;
  for (const cell_figure& f : r.cell.figures) {
    const bool computed = row.ratio && f.is == style::ratio && list.size() < r.cell.figures.size();
    values.push_back(computed || next >= list.size() ? json() : list[next++]);
  }
  return values;
}

// Returns the number that figure `f` of a ratio divides: that of the same figure, else the first one.
std::optional<double> divided(const report_request& r, const std::vector<json>& values, std::size_t f) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i].is_number() && r.cell.figures[i].path == r.cell.figures[f].path) return values[i].get<double>();
  return std::nullopt;
}

// Returns a ratio within the figures of one publisher: to the reference column of the row, or to its row of that name.
std::optional<double> published_ratio(const report_request& r, const published_row& row, const std::string& column,
                                      std::size_t f) {
  const std::string reference = plain_text(r.ratio_to.begin().value());
  const published_row* in = &row;
  std::string at = reference;
  if (r.ratio_to.begin().key() == r.rows) {
    const auto found = std::ranges::find_if(r.context, [&](const published_row& other) {
      return other.source == row.source && (other.name == reference || other.name == r.label_of(reference));
    });
    if (found == r.context.end()) return std::nullopt;
    in = &*found;
    at = column;
  }
  const auto of = divided(r, published_values(r, row, column), f), to = divided(r, published_values(r, *in, at), f);
  return of && to && *to != 0 ? std::optional(*of / *to) : std::nullopt;
}

} // namespace

void add_new(std::vector<std::string>& to, const std::string& text) {
  if (std::find(to.begin(), to.end(), text) == to.end()) to.push_back(text);
}

bool determines(const json& result, const std::string& by, const std::string& key) {
  if (by == key) return true;
  std::map<std::string, json> seen;
  for (const json& entry : result.at("results")) {
    const json value = field(result, entry, key);
    if (seen.emplace(field(result, entry, by).dump(-1, ' ', false, json::error_handler_t::replace), value)
            .first->second != value)
      return false;
  }
  return true;
}

std::vector<std::string> fixed_keys_of(const json& result, const report_request& r) {
  std::vector<std::string> keys;
  for (const std::string& key : swept_keys(result)) {
    bool varies = false; // together with a key of the reference
    for (const auto& [given, value] : r.ratio_to.items()) varies = varies || determines(result, given, key);
    if (!varies) keys.push_back(key);
  }
  return keys;
}

placed_case place_case(const json& result, const json& entry, const report_request& r,
                       const std::vector<std::string>& fixed_keys) {
  const auto text = [&](const std::string& key) {
    return key.empty() ? std::string() : plain_text(field(result, entry, key));
  };
  placed_case c{text(r.rows), text(r.columns), text(r.list), {}, {}};
  const json* reference =
      has_figures(entry) && !r.ratio_to.empty() ? reference_of(result, entry, r, fixed_keys) : nullptr;
  for (const cell_figure& f : r.cell.figures) {
    json value = has_figures(entry) ? field(result, entry, f.path) : json();
    quantity unit = quantity_of(entry, f.path);
    if (f.is == style::ratio) {
      const json to = reference ? field(result, *reference, f.path) : json();
      const bool numbers = value.is_number() && to.is_number() && to != 0;
      value = numbers ? json(value.get<double>() / to.get<double>()) : json();
      unit = {"ratio to " + r.text_of(r.ratio_to), ""};
    } else if (f.is == style::percentage) {
      unit.unit = "%";
    }
    c.values.push_back(std::move(value));
    c.units.push_back(std::move(unit));
  }
  return c;
}

std::vector<std::string> units_of(const std::vector<placed_case>& cases, std::size_t f, const std::string* row) {
  std::vector<std::string> units;
  for (const placed_case& c : cases)
    if (!c.values[f].is_null() && (!row || c.row == *row)) add_new(units, c.units[f].unit);
  return units;
}

unit_place place_of_units(const std::vector<placed_case>& cases, std::size_t f) {
  if (units_of(cases, f).size() <= 1) return unit_place::title;
  const bool one_a_row = std::all_of(cases.begin(), cases.end(),
                                     [&](const placed_case& c) { return units_of(cases, f, &c.row).size() <= 1; });
  return one_a_row ? unit_place::row : unit_place::cell;
}

std::vector<std::string> cell_texts(const std::vector<placed_case>& cases, const report_request& r) {
  std::vector<std::string> texts(cases.size(), r.cell.texts[0]);
  std::vector<bool> known(cases.size());
  for (std::size_t f = 0; f < r.cell.figures.size(); ++f) {
    std::vector<json> values;
    for (const placed_case& c : cases) values.push_back(c.values[f]);
    const std::vector<std::string> plain = aligned_numbers(values);
    const bool with_unit = place_of_units(cases, f) == unit_place::cell;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      known[i] = known[i] || !values[i].is_null();
      texts[i] += number_text(values[i], r.cell.figures[f], plain[i]);
      if (with_unit && !values[i].is_null()) texts[i] += " " + cases[i].units[f].unit;
      texts[i] += r.cell.texts[f + 1];
    }
  }
  for (std::size_t i = 0; i < cases.size(); ++i)
    if (!known[i]) texts[i] = "-";
  return texts;
}

std::string published_text(const report_request& r, const published_row& row, const std::string& column) {
  const json given = row.values.value(column, json());
  if (given.is_null()) return "-";
  if (given.is_string()) return one_line(given.get<std::string>());
  if (!r.list.empty()) {
    std::vector<std::string> items;
    for (const json& item : given.is_array() ? given : json::array({given}))
      items.push_back(published_number(item, r.cell.figures[0]));
    return join(items, "/");
  }
  const std::vector<json> values = published_values(r, row, column);
  std::string text = r.cell.texts[0];
  for (std::size_t f = 0; f < values.size(); ++f) {
    const bool computed = row.ratio && r.cell.figures[f].is == style::ratio;
    const auto ratio = computed ? published_ratio(r, row, column, f) : std::nullopt;
    text += computed ? ratio ? number_text(*ratio, r.cell.figures[f], "") : "-"
                     : published_number(values[f], r.cell.figures[f]);
    text += r.cell.texts[f + 1];
  }
  return text;
}

std::string description_of(const std::vector<placed_case>& cases, const report_request& r) {
  std::vector<std::string> figures;
  for (std::size_t f = 0; f < r.cell.figures.size(); ++f) {
    std::vector<std::string> says, scopes;
    if (const auto units = units_of(cases, f); units.size() == 1) says.push_back(units[0]);
    for (const placed_case& c : cases) add_new(scopes, c.units[f].scope);
    says.push_back(join(scopes, " or "));
    std::erase(says, "");
    const std::string& path = r.cell.figures[f].path;
    figures.push_back(r.labels.value(path, path) + (says.empty() ? "" : " [" + join(says) + "]"));
  }
  if (r.list.empty()) return join(figures);
  std::vector<std::string> items;
  for (const placed_case& c : cases) add_new(items, r.label_of(c.item));
  return fmt::format("{} for {} {}", join(figures), r.name_of(r.list), join(items));
}

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#include "report/pivot.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "report/fields.hpp"
#include "report/quantity.hpp"
#include "report/render.hpp"
#include "report/result_checks.hpp"
#include "report/text_table.hpp"

namespace regatta {
namespace {

using nlohmann::json;

struct axes {
  std::string rows, columns, value;
};

// Appends a text unless it is there, so that texts keep the order of the sweep.
void add_new(std::vector<std::string>& to, const std::string& text) {
  if (std::find(to.begin(), to.end(), text) == to.end()) to.push_back(text);
}

// Returns whether the axis shows the same values as the key, as "workers" does for "cluster.workers".
bool shows(const json& result, const std::string& axis, const std::string& key) {
  const json& entries = result.at("results");
  return axis == key || std::all_of(entries.begin(), entries.end(), [&](const json& entry) {
           return field(result, entry, axis) == field(result, entry, key);
         });
}

// Returns the swept keys that neither axis shows: "batch 64, transport tcp".
std::string rest_of(const json& result, const json& entry, const axes& a, const std::vector<std::string>& keys) {
  std::string text;
  for (const std::string& key : keys) {
    if (shows(result, a.rows, key) || shows(result, a.columns, key)) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", short_name(key), plain_text(field(result, entry, key)));
  }
  return text;
}

// The content of a cell and its position.
struct figure {
  std::string row, column;
  json value;
  quantity is;
};

std::vector<figure> figures_of(const json& result, const std::vector<const json*>& entries, const axes& a) {
  std::vector<figure> figures;
  for (const json* entry : entries)
    figures.push_back({plain_text(field(result, *entry, a.rows)), plain_text(field(result, *entry, a.columns)),
                       has_figures(*entry) ? field(result, *entry, a.value) : json(), quantity_of(*entry, a.value)});
  return figures;
}

// Returns the distinct units of the values: of all, or of one row.
std::vector<std::string> units_of(const std::vector<figure>& figures, const std::string* row = nullptr) {
  std::vector<std::string> units;
  for (const figure& f : figures)
    if (!f.value.is_null() && (!row || f.row == *row)) add_new(units, f.is.unit);
  return units;
}

// Position of the units: in the title if all values have one unit; in a column if each row has one; else in each cell.
enum class unit_place { title, row, cell };

unit_place place_of_units(const std::vector<figure>& figures) {
  if (units_of(figures).size() <= 1) return unit_place::title;
  const bool one_a_row = std::all_of(figures.begin(), figures.end(),
                                     [&](const figure& f) { return units_of(figures, &f.row).size() <= 1; });
  return one_a_row ? unit_place::row : unit_place::cell;
}

// Returns for example "throughput [images/s, global]".
std::string title_of(const std::vector<figure>& figures, const std::string& path) {
  std::vector<std::string> says;
  if (const auto units = units_of(figures); units.size() == 1 && !units[0].empty()) says.push_back(units[0]);
  std::vector<std::string> scopes;
  for (const figure& f : figures) add_new(scopes, f.is.scope);
  says.push_back(join(scopes, " or "));
  return path + " [" + join(says) + "]";
}

pivot_table table_of(const std::vector<figure>& figures, const axes& a, std::string title) {
  const unit_place units = place_of_units(figures);
  std::vector<std::string> row_names, column_names;
  std::vector<json> values;
  for (const figure& f : figures) {
    add_new(row_names, f.row);
    add_new(column_names, f.column);
    values.push_back(f.value);
  }
  const std::vector<std::string> texts = aligned_numbers(values);
  pivot_table pivot{std::move(title), {}, {}};
  text_table& table = pivot.table;
  table.columns.push_back({short_name(a.rows) + " \\ " + short_name(a.columns)});
  if (units == unit_place::row) table.columns.push_back({"unit"});
  table.keys = table.columns.size();
  for (const std::string& name : column_names) table.columns.push_back({name, true});
  for (const std::string& row : row_names) {
    table_row& line = table.rows.emplace_back();
    line.cells.push_back(row);
    pivot.values.emplace_back(table.keys); // names
    if (units == unit_place::row) {
      const auto of_row = units_of(figures, &row);
      line.cells.push_back(of_row.empty() ? "-" : of_row[0]);
    }
    for (const std::string& column : column_names) {
      std::string cell = "-";
      json value;
      for (std::size_t i = 0; i < figures.size(); ++i)
        if (figures[i].row == row && figures[i].column == column) {
          cell = texts[i] + (units == unit_place::cell && !values[i].is_null() ? " " + figures[i].is.unit : "");
          value = values[i].is_number() ? values[i] : json();
        }
      line.cells.push_back(cell);
      pivot.values.back().push_back(value);
    }
  }
  return pivot;
}

// Divides the columns into as many blocks, one below the other, as the width requires; each repeats the names of the
// rows.
std::string draw_in_blocks(const text_table& table, std::size_t width) {
  std::string out;
  for (std::size_t next = table.keys; next < table.columns.size();) {
    std::size_t end = table.columns.size();
    text_table block = part_of(table, next, end);
    while (width > 0 && width_of(block) > width && end > next + 1) block = part_of(table, next, --end);
    out += (out.empty() ? "" : "\n") + draw(block, 0);
    next = end;
  }
  return out;
}

} // namespace

std::vector<pivot_table> pivot_tables(const json& result) {
  const json experiment = result.at("context").value("experiment", json::object());
  const json asked = experiment.value("report", json::object());
  const axes a{asked.value("rows", ""), asked.value("columns", ""), asked.value("value", "")};
  if (a.rows.empty() || a.columns.empty() || a.value.empty()) return {};
  const std::vector<std::string> keys = swept_keys(result);
  std::vector<std::string> rests;
  for (const json& entry : result.at("results")) add_new(rests, rest_of(result, entry, a, keys));
  std::vector<pivot_table> tables;
  for (const std::string& rest : rests) {
    std::vector<const json*> entries;
    for (const json& entry : result.at("results"))
      if (rest_of(result, entry, a, keys) == rest) entries.push_back(&entry);
    const std::vector<figure> figures = figures_of(result, entries, a);
    tables.push_back(table_of(figures, a, title_of(figures, a.value) + (rest.empty() ? "" : ": " + rest)));
  }
  return tables;
}

std::string render_pivot(const json& result, bool markdown, std::size_t width) {
  std::string out;
  for (const pivot_table& pivot : pivot_tables(result)) {
    out += out.empty() ? "" : "\n";
    out += markdown ? markdown_text(pivot.title) + "\n\n" + draw_markdown(pivot.table)
                    : fill(pivot.title, width, 2) + draw_in_blocks(pivot.table, width);
  }
  return out;
}

} // namespace regatta

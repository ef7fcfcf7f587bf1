// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "measure/canary.hpp"
#include "measure/summary.hpp"
#include "report/fields.hpp"
#include "report/render.hpp"
#include "report/text_table.hpp"

namespace regatta {
namespace {

using nlohmann::json;

struct axes {
  std::string rows, columns, value;
};

// In the order in which they first come: that of the sweep.
void add_new(std::vector<std::string>& to, const std::string& text) {
  if (std::find(to.begin(), to.end(), text) == to.end()) to.push_back(text);
}

// Whether the axis says the same as the key, as "workers" does of "cluster.workers".
bool shows(const json& result, const std::string& axis, const std::string& key) {
  const json& entries = result.at("results");
  return axis == key || std::all_of(entries.begin(), entries.end(), [&](const json& entry) {
           return field(result, entry, axis) == field(result, entry, key);
         });
}

// "batch 64, transport tcp": those swept keys that neither axis shows.
std::string rest_of(const json& result, const json& entry, const axes& a, const std::vector<std::string>& keys) {
  std::string text;
  for (const std::string& key : keys) {
    if (shows(result, a.rows, key) || shows(result, a.columns, key)) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", short_name(key), plain_text(field(result, entry, key)));
  }
  return text;
}

std::string unit_of(const json& result, const std::string& path) {
  for (const json& entry : result.at("results"))
    if (const json value = entry.value(path, json()); value.is_object() && value.contains("unit"))
      return " [" + plain_text(value["unit"]) + "]";
  return "";
}

text_table table_of(const json& result, const std::vector<const json*>& entries, const axes& a) {
  std::vector<std::string> row_names, column_names;
  std::vector<json> values;
  for (const json* entry : entries) {
    add_new(row_names, plain_text(field(result, *entry, a.rows)));
    add_new(column_names, plain_text(field(result, *entry, a.columns)));
    values.push_back(has_figures(*entry) ? field(result, *entry, a.value) : json());
  }
  const std::vector<std::string> texts = aligned_numbers(values);
  text_table table;
  table.keys = 1;
  table.columns.push_back({short_name(a.rows) + " \\ " + short_name(a.columns)});
  for (const std::string& name : column_names) table.columns.push_back({name, true});
  for (const std::string& row : row_names) {
    table_row& line = table.rows.emplace_back();
    line.cells.push_back(row);
    for (const std::string& column : column_names) {
      std::string cell = "-";
      for (std::size_t i = 0; i < entries.size(); ++i)
        if (plain_text(field(result, *entries[i], a.rows)) == row &&
            plain_text(field(result, *entries[i], a.columns)) == column)
          cell = texts[i];
      line.cells.push_back(cell);
    }
  }
  return table;
}

} // namespace

std::string render_pivot(const json& result, bool markdown) {
  const json experiment = result.at("context").value("experiment", json::object());
  const json asked = experiment.value("report", json::object());
  const axes a{asked.value("rows", ""), asked.value("columns", ""), asked.value("value", "")};
  if (a.rows.empty() || a.columns.empty() || a.value.empty()) return "";
  const std::vector<std::string> keys = swept_keys(result);
  std::vector<std::string> rests;
  for (const json& entry : result.at("results")) add_new(rests, rest_of(result, entry, a, keys));
  std::string out;
  for (const std::string& rest : rests) {
    std::vector<const json*> entries;
    for (const json& entry : result.at("results"))
      if (rest_of(result, entry, a, keys) == rest) entries.push_back(&entry);
    const std::string title = a.value + unit_of(result, a.value) + (rest.empty() ? "" : ": " + rest);
    const text_table table = table_of(result, entries, a);
    out += out.empty() ? "" : "\n";
    out += markdown ? title + "\n\n" + draw_markdown(table) : title + "\n" + draw(table, 0);
  }
  return out;
}

} // namespace regatta

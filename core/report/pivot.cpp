// SPDX-License-Identifier: Apache-2.0
#include "report/pivot.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "report/fields.hpp"
#include "report/pivot_figures.hpp"
#include "report/text_table.hpp"

namespace regatta {
namespace {

using nlohmann::json;

// Returns the swept keys that the table does not show: "batch 64, transport tcp".
std::string rest_of(const json& result, const json& entry, const report_request& r,
                    const std::vector<std::string>& keys) {
  std::string text;
  for (const std::string& key : keys)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", r.name_of(key),
                        r.label_of(plain_text(field(result, entry, key))));
  return text;
}

bool is_number(const std::string& text) {
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return !text.empty() && *end == 0;
}

// Returns the texts of the columns: those of the cases, then those that only published rows have; by size if all are
// numbers.
std::vector<std::string> columns_of(const std::vector<placed_case>& cases, const report_request& r) {
  std::vector<std::string> columns;
  for (const placed_case& c : cases) add_new(columns, c.column);
  const std::size_t own = columns.size();
  for (const published_row& row : r.context)
    for (const auto& [column, value] : row.values.items()) add_new(columns, column);
  if (columns.size() > own && std::all_of(columns.begin(), columns.end(), is_number))
    std::stable_sort(columns.begin(), columns.end(), [](const std::string& a, const std::string& b) {
      return std::strtod(a.c_str(), nullptr) < std::strtod(b.c_str(), nullptr);
    });
  return columns;
}

// Makes the table of some cases.
class pivot_maker {
public:
  pivot_maker(const report_request& r, std::vector<placed_case> cases)
      : r_(r), cases_(std::move(cases)), texts_(cell_texts(cases_, r)), column_names_(columns_of(cases_, r)) {
    for (const placed_case& c : cases_) {
      add_new(row_names_, c.row);
      add_new(items_, c.item);
    }
    for (std::size_t f = 0; f < r.cell.figures.size(); ++f)
      if (place_of_units(cases_, f) == unit_place::row) with_unit_.push_back(f);
  }

  pivot_table make(std::string title) {
    table_.title = std::move(title);
    text_table& table = table_.table;
    table.columns.push_back({r_.name_of(r_.rows) + " \\ " + r_.name_of(r_.columns)});
    if (!with_unit_.empty()) table.columns.push_back({"unit"});
    table.keys = table.columns.size();
    for (const std::string& name : column_names_) table.columns.push_back({r_.label_of(name), true});
    for (const std::string& row : row_names_) add_row(row);
    table_.own_rows = table.rows.size();
    std::vector<std::string> sources;
    for (const published_row& row : r_.context) {
      add_new(sources, row.source);
      add_published(row, static_cast<std::size_t>(std::ranges::find(sources, row.source) - sources.begin()) + 1);
    }
    for (std::size_t i = 0; i < sources.size(); ++i)
      table_.notes.push_back(fmt::format("[{}] published by others, not measured here: {}", i + 1, sources[i]));
    return std::move(table_);
  }

private:
  table_row& begin_row(const std::string& name) {
    table_row& line = table_.table.rows.emplace_back();
    line.cells.push_back(name);
    table_.values.emplace_back(table_.table.keys);
    return line;
  }

  void add_row(const std::string& row) {
    table_row& line = begin_row(r_.label_of(row));
    std::vector<std::string> units;
    for (const std::size_t f : with_unit_)
      for (const std::string& unit : units_of(cases_, f, &row)) units.push_back(unit);
    if (!with_unit_.empty()) line.cells.push_back(units.empty() ? "-" : join(units));
    for (const std::string& column : column_names_) add_cell(line, row, column);
  }

  void add_cell(table_row& line, const std::string& row, const std::string& column) {
    std::vector<std::string> texts(items_.size(), "-"); // by item of the list
    json value;
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      if (cases_[i].row != row || cases_[i].column != column) continue;
      texts[static_cast<std::size_t>(std::ranges::find(items_, cases_[i].item) - items_.begin())] = texts_[i];
      value = cases_[i].values[0];
    }
    const bool known = std::ranges::any_of(texts, [](const std::string& text) { return text != "-"; });
    line.cells.push_back(known ? join(texts, "/") : "-");
    const bool one_number = cases_[0].values.size() == 1 && items_.size() == 1 && value.is_number();
    table_.values.back().push_back(one_number ? value : json());
  }

  void add_published(const published_row& row, std::size_t source) {
    table_row& line = begin_row(fmt::format("{} [{}]", one_line(row.name), source));
    if (!with_unit_.empty()) line.cells.emplace_back("-");
    for (const std::string& column : column_names_) line.cells.push_back(published_text(r_, row, column));
    table_.values.back().resize(table_.table.columns.size());
  }

  const report_request& r_;
  std::vector<placed_case> cases_;
  std::vector<std::string> texts_; // cell of each case
  std::vector<std::string> column_names_, row_names_, items_;
  std::vector<std::size_t> with_unit_; // figures whose units stand in a column
  pivot_table table_;
};

bool has_reference(const json& result, const report_request& r) {
  return std::ranges::any_of(result.at("results"), [&](const json& entry) {
    bool alike = has_figures(entry);
    for (const auto& [key, value] : r.ratio_to.items()) alike = alike && field(result, entry, key) == value;
    return alike;
  });
}

std::vector<pivot_table> tables_of(const json& result, const report_request& r) {
  std::vector<const json*> entries;
  for (const json& entry : result.at("results")) {
    bool shown = true;
    for (const auto& [key, value] : r.where.items()) shown = shown && field(result, entry, key) == value;
    if (shown) entries.push_back(&entry);
  }
  const std::string title = r.title.empty() ? "" : r.title + ": ";
  if (entries.empty() && !r.where.empty())
    return {{r.title.empty() ? description_of({}, r) : r.title, {}, {}, 0, {"no case has " + r.text_of(r.where)}}};
  std::vector<std::string> keys;
  for (const std::string& key : swept_keys(result))
    if (!determines(result, r.rows, key) && !determines(result, r.columns, key) &&
        !(!r.list.empty() && determines(result, r.list, key)) && !r.where.contains(key))
      keys.push_back(key);
  const std::vector<std::string> fixed_keys = fixed_keys_of(result, r);
  std::vector<std::string> rests;
  for (const json* entry : entries) add_new(rests, rest_of(result, *entry, r, keys));
  std::vector<pivot_table> tables;
  for (const std::string& rest : rests) {
    std::vector<placed_case> cases;
    for (const json* entry : entries)
      if (rest_of(result, *entry, r, keys) == rest) cases.push_back(place_case(result, *entry, r, fixed_keys));
    std::vector<std::string> alike{r.text_of(r.where), rest};
    std::erase(alike, "");
    const std::string described = title + description_of(cases, r) + (title.empty() ? ": " : "; ") + join(alike);
    tables.push_back(
        pivot_maker(r, std::move(cases)).make(alike.empty() ? described.substr(0, described.size() - 2) : described));
    if (!r.ratio_to.empty() && !has_reference(result, r))
      tables.back().notes.push_back("no ratios: no case has " + r.text_of(r.ratio_to));
  }
  return tables;
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
  std::vector<pivot_table> tables;
  for (const report_request& r : report_requests(result))
    for (pivot_table& table : tables_of(result, r)) tables.push_back(std::move(table));
  if (result.value("simulated", false))
    for (pivot_table& table : tables) table.title.insert(0, "SIMULATED: ");
  return tables;
}

std::string render_pivot(const json& result, bool markdown, std::size_t width) {
  std::string out;
  for (const pivot_table& pivot : pivot_tables(result)) {
    out += out.empty() ? "" : "\n";
    if (markdown) {
      out += markdown_text(pivot.title) + "\n";
      if (!pivot.table.columns.empty()) out += "\n" + draw_markdown(pivot.table);
      for (const std::string& note : pivot.notes) out += "\n" + markdown_text(note) + "\n";
      continue;
    }
    out += fill(pivot.title, width, 2) + draw_in_blocks(pivot.table, width);
    for (const std::string& note : pivot.notes) out += fill(note, width, 4);
  }
  return out;
}

} // namespace regatta

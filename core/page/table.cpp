// SPDX-License-Identifier: Apache-2.0
#include "page/table.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.hpp"
#include "files/markup.hpp"
#include "report/fields.hpp"
#include "report/text_table.hpp"

namespace regatta::page {
namespace {

using nlohmann::json;

std::string attribute(const char* name, const std::string& value) {
  return value.empty() ? "" : fmt::format(" {}=\"{}\"", name, markup_text(value));
}

std::string cell_markup(const page_cell& cell, const page_column& column, bool key) {
  std::string attributes;
  if (cell.value.is_number())
    attributes = fmt::format(" data-value={}", cell.value.dump());
  else if (column.right && !key)
    attributes += " class=\"n\""; // numbers are aligned by their attribute
  else if (column.wraps)
    attributes += " class=\"text\"";
  attributes += attribute("data-path", cell.path);
  const char* const tag = key ? "th" : "td";
  return fmt::format("<{}{}>{}</{}>", tag, attributes, markup_text(cell.text), tag);
}

} // namespace

void remove_empty_columns(page_table& table) {
  for (std::size_t c = table.columns.size(); c-- > table.keys;) {
    const bool empty = std::all_of(table.rows.begin(), table.rows.end(), [&](const page_row& r) {
      return !r.note.empty() || (r.cells[c].value.is_null() && (r.cells[c].text.empty() || r.cells[c].text == "-"));
    });
    if (!empty) continue;
    table.columns.erase(table.columns.begin() + static_cast<std::ptrdiff_t>(c));
    for (page_row& r : table.rows) r.cells.erase(r.cells.begin() + static_cast<std::ptrdiff_t>(c));
  }
}

std::string markup_of(const page_table& table) {
  if (table.rows.empty() || table.columns.size() <= table.keys) return "";
  std::string out =
      fmt::format("<div class=\"wide\"><table{}>\n<thead><tr>", table.of_cases ? " data-cases=\"0\"" : "");
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const page_column& c = table.columns[i];
    out += fmt::format("<th{}{}{}>{}</th>", attribute("data-path", c.path), attribute("title", c.tip),
                       c.right && i >= table.keys ? " class=\"n\"" : "", markup_text(c.header));
  }
  out += "</tr></thead>\n<tbody>\n";
  for (const page_row& row : table.rows) {
    out += "<tr>";
    const std::size_t shown = row.note.empty() ? row.cells.size() : table.keys;
    for (std::size_t c = 0; c < shown; ++c) out += cell_markup(row.cells[c], table.columns[c], c < table.keys);
    if (!row.note.empty())
      out += fmt::format("<td colspan=\"{}\" class=\"bad\">{}</td>", table.columns.size() - table.keys,
                         markup_text(row.note));
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string markdown_of(const page_table& table) {
  if (table.rows.empty() || table.columns.size() <= table.keys) return "";
  text_table text;
  text.keys = table.keys;
  for (std::size_t c = 0; c < table.columns.size(); ++c)
    text.columns.push_back({one_line(table.columns[c].header), table.columns[c].right && c >= table.keys});
  for (const page_row& row : table.rows) {
    table_row& to = text.rows.emplace_back();
    to.note = one_line(row.note);
    for (const page_cell& cell : row.cells) to.cells.push_back(one_line(cell.text));
    to.cells.resize(table.columns.size());
  }
  return draw_markdown(text) + "\n";
}

page_cell number_cell(const json& value, const std::function<std::string(double)>& text, const std::string& path) {
  if (!value.is_number()) return {"-", nullptr, ""};
  return {text(value.get<double>()), value, path};
}

std::string ratio_text(double ratio) {
  return fmt::format("{:.2f}", ratio);
}

std::string percent_text(double share) {
  constexpr double visible = 0.0005; // less is 0.0 %, without a sign
  return percent(std::abs(share) < visible ? 0 : share);
}

std::string loss_text(double loss) {
  return fmt::format("{:.3g}", loss);
}

} // namespace regatta::page

// SPDX-License-Identifier: Apache-2.0
#include "report/text_table.hpp"

#include <algorithm>
#include <sstream>

namespace regatta {
namespace {

constexpr std::size_t gap = 2; // blanks between columns
constexpr std::size_t narrowest_note = 20;

std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::size_t has = display_width(text);
  const std::string blanks(has < width ? width - has : 0, ' ');
  return right ? blanks + text : text + blanks;
}

std::vector<std::size_t> widths_of(const text_table& table) {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    std::size_t width = display_width(table.columns[c].header);
    for (const table_row& row : table.rows)
      if (row.note.empty() || c < table.keys) width = std::max(width, display_width(row.cells[c]));
    widths.push_back(width);
  }
  return widths;
}

void end_line(std::string& line) {
  line.erase(line.find_last_not_of(' ') + 1);
  line += '\n';
}

} // namespace

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string shortened(const std::string& text, std::size_t width) {
  if (display_width(text) <= width) return text;
  if (width == 0) return "";
  std::size_t end = 0;
  for (std::size_t taken = 0; end < text.size(); ++end)
    if ((static_cast<unsigned char>(text[end]) & 0xc0) != 0x80 && taken++ == width - 1) break;
  return text.substr(0, end) + "…";
}

std::size_t width_of(const text_table& table) {
  std::size_t sum = 0;
  for (const std::size_t width : widths_of(table)) sum += width + gap;
  return sum > gap ? sum - gap : 0;
}

std::vector<std::string> fit(text_table& table, std::size_t width) {
  std::vector<std::string> left_out;
  while (width > 0 && width_of(table) > width) {
    const auto most = std::max_element(table.columns.begin(), table.columns.end(),
                                       [](const auto& a, const auto& b) { return a.dispensable < b.dispensable; });
    if (most == table.columns.end() || most->dispensable == 0) break;
    const auto at = most - table.columns.begin();
    left_out.push_back(most->header);
    table.columns.erase(most);
    for (table_row& row : table.rows) row.cells.erase(row.cells.begin() + at);
  }
  return left_out;
}

text_table part_of(const text_table& table, std::size_t first, std::size_t end) {
  const auto pick = [&](const auto& all) {
    using item = std::ptrdiff_t;
    auto some = all;
    some.erase(some.begin() + static_cast<item>(end), some.end());
    some.erase(some.begin() + static_cast<item>(table.keys), some.begin() + static_cast<item>(first));
    return some;
  };
  text_table part;
  part.keys = table.keys;
  part.columns = pick(table.columns);
  for (const table_row& row : table.rows) part.rows.push_back({pick(row.cells), row.note});
  return part;
}

std::string draw(const text_table& table, std::size_t width) {
  const std::vector<std::size_t> widths = widths_of(table);
  std::string out;
  const auto add_cells = [&](std::string& line, std::size_t count, auto cell) {
    for (std::size_t c = 0; c < count; ++c)
      line += (c == 0 ? "" : std::string(gap, ' ')) + padded(cell(c), widths[c], table.columns[c].right);
  };
  std::string head;
  add_cells(head, table.columns.size(), [&](std::size_t c) { return table.columns[c].header; });
  end_line(head);
  out += head;
  for (const table_row& row : table.rows) {
    std::string line;
    add_cells(line, row.note.empty() ? table.columns.size() : table.keys, [&](std::size_t c) { return row.cells[c]; });
    if (row.note.empty()) {
      end_line(line);
      out += line;
      continue;
    }
    if (table.keys > 0) line += std::string(gap, ' ');
    const std::size_t indent = display_width(line);
    const bool beside = width == 0 || indent + narrowest_note <= width;
    if (!beside) end_line(line);
    out += line;
    if (!beside) out += std::string(gap, ' ');
    const std::size_t begin = beside ? indent : gap;
    out += fill(row.note, width, begin, begin);
  }
  return out;
}

std::string draw_markdown(const text_table& table) {
  std::string out = "|", rule = "|";
  for (const table_column& c : table.columns) {
    out += " " + markdown_text(c.header) + " |";
    rule += c.right ? " ---: |" : " --- |";
  }
  out += "\n" + rule + "\n";
  for (const table_row& row : table.rows) {
    out += "|";
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      const bool noted = !row.note.empty() && c >= table.keys;
      out += " " + markdown_text(!noted ? row.cells[c] : c == table.keys ? row.note : "") + " |";
    }
    out += "\n";
  }
  return out;
}

std::string markdown_text(const std::string& text) {
  std::string out;
  for (const char c : text) switch (c) {
    case '&': out += "&amp;"; break;
    case '<': out += "&lt;"; break;
    case '>': out += "&gt;"; break;
    case '|': out += "\\|"; break;
    default: out += c;
    }
  return out;
}

std::string flow(const std::vector<std::string>& items, std::size_t width) {
  constexpr std::size_t between = 3;
  std::string out, line;
  for (const std::string& item : items) {
    if (item.empty()) continue;
    if (!line.empty() && width > 0 && display_width(line) + between + display_width(item) > width) {
      out += line + "\n";
      line.clear();
    }
    if (line.empty() && width > 0 && display_width(item) > width) {
      out += fill(item, width, 2);
      continue;
    }
    line += (line.empty() ? "" : std::string(between, ' ')) + item;
  }
  return line.empty() ? out : out + line + "\n";
}

std::string fill(const std::string& text, std::size_t width, std::size_t indent, std::size_t begin) {
  if (width == 0) return text + "\n";
  std::string out;
  std::size_t used = begin;
  bool first = true;
  std::istringstream words(text);
  for (std::string word; words >> word; first = false) {
    const std::size_t size = display_width(word);
    if (!first && used + 1 + size > width) {
      out += "\n" + std::string(indent, ' ');
      used = indent;
    } else if (!first) {
      out += " ";
      ++used;
    }
    out += word;
    used += size;
  }
  return out + "\n";
}

} // namespace regatta

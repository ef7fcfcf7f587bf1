// SPDX-License-Identifier: Apache-2.0
#include "report/latex.hpp"

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"

namespace regatta {
namespace {

// The second text of a pair stands for the first. Brackets and the star are enclosed, because after a line break LaTeX
// takes them for its arguments.
constexpr std::pair<std::string_view, std::string_view> replaced[] = {
    {"\\", "\\textbackslash{}"},
    {"{", "\\{"},
    {"}", "\\}"},
    {"%", "\\%"},
    {"&", "\\&"},
    {"$", "\\$"},
    {"#", "\\#"},
    {"_", "\\_"},
    {"~", "\\textasciitilde{}"},
    {"^", "\\textasciicircum{}"},
    {"<", "\\textless{}"},
    {">", "\\textgreater{}"},
    {"|", "\\textbar{}"},
    {"\"", "''"},
    {"[", "{[}"},
    {"]", "{]}"},
    {"*", "{*}"},
    {"→", "$\\rightarrow$"},
    {"±", "$\\pm$"},
    {"×", "$\\times$"},
    {"–", "--"},
    {"…", "\\ldots{}"},
    {"µ", "$\\mu$"},
};

std::string cell(const std::string& text) {
  return text == "-" ? "--" : latex_text(text);
}

} // namespace

std::string latex_text(const std::string& text) {
  const std::string clean = one_line(text);
  std::string out;
  for (std::size_t at = 0; at < clean.size();) {
    const std::string_view rest = std::string_view(clean).substr(at);
    std::string_view from = rest.substr(0, 1), to = from;
    for (const auto& [character, command] : replaced)
      if (rest.starts_with(character)) {
        from = character;
        to = command;
        break;
      }
    out += to;
    at += from.size();
  }
  return out;
}

std::string draw_latex(const text_table& table, const std::string& caption, std::size_t own_rows,
                       const std::vector<std::string>& notes) {
  std::string kinds, head;
  for (const table_column& c : table.columns) {
    kinds += c.right ? 'r' : 'l';
    head += (head.empty() ? "" : " & ") + cell(c.header);
  }
  std::string out = "\\begin{table}\n\\centering\n";
  if (!caption.empty()) out += "\\caption{" + latex_text(caption) + "}\n";
  out += "\\begin{tabular}{" + kinds + "}\n\\toprule\n" + head + " \\\\\n\\midrule\n";
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    const table_row& row = table.rows[r];
    if (r == own_rows && r > 0) out += "\\midrule\n";
    const std::size_t cells = row.note.empty() ? table.columns.size() : table.keys;
    std::string line;
    for (std::size_t c = 0; c < cells; ++c) line += (c == 0 ? "" : " & ") + cell(row.cells[c]);
    if (!row.note.empty())
      line += fmt::format("{}\\multicolumn{{{}}}{{l}}{{{}}}", cells == 0 ? "" : " & ", table.columns.size() - cells,
                          latex_text(row.note));
    out += line + " \\\\\n";
  }
  out += "\\bottomrule\n\\end{tabular}\n";
  for (const std::string& note : notes) out += "\\par\\footnotesize " + latex_text(note) + "\n";
  return out + "\\end{table}\n";
}

} // namespace regatta

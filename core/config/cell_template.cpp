// SPDX-License-Identifier: Apache-2.0
#include "config/cell_template.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"

namespace regatta {
namespace {

using nlohmann::json;

// Returns the figure of "samples_per_second" or "efficiency:.1%".
cell_figure figure_of(const std::string& text) {
  const std::size_t colon = text.find(':');
  cell_figure f{text.substr(0, colon), cell_figure::style::number, -1};
  if (f.path.empty()) throw cell_error(fmt::format("expected the name of a figure, got \"{}\"", one_line(text)));
  if (colon == std::string::npos) return f;
  std::string format = text.substr(colon + 1);
  if (format.ends_with('%')) f.is = cell_figure::style::percentage;
  if (format.ends_with('x')) f.is = cell_figure::style::ratio;
  if (f.is != cell_figure::style::number) format.pop_back();
  const bool decimals = format.size() == 2 && format[0] == '.' && format[1] >= '0' && format[1] <= '9';
  if (decimals) f.decimals = format[1] - '0';
  if (!decimals && !(format.empty() && f.is != cell_figure::style::number))
    throw cell_error(fmt::format("expected a format such as .2, %, .0% or x after the colon, got \"{}\"",
                                 one_line(text.substr(colon + 1))));
  return f;
}

cell_template text_template(const std::string& text) {
  cell_template t;
  t.texts.emplace_back();
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool twice = i + 1 < text.size() && text[i] == text[i + 1];
    if ((text[i] == '{' || text[i] == '}') && twice) {
      t.texts.back() += text[i++];
    } else if (text[i] == '{') {
      const std::size_t end = text.find('}', i);
      if (end == std::string::npos) throw cell_error("expected a } for each {; {{ is a brace");
      t.figures.push_back(figure_of(text.substr(i + 1, end - i - 1)));
      t.texts.emplace_back();
      i = end;
    } else if (text[i] == '}') {
      throw cell_error("expected a { before each }; }} is a brace");
    } else {
      t.texts.back() += text[i];
    }
  }
  if (t.figures.empty()) throw cell_error("expected at least one figure in braces");
  return t;
}

} // namespace

cell_template cell_template_of(const json& value, bool ratio) {
  const bool list = value.is_array() && !value.empty() &&
                    std::all_of(value.begin(), value.end(), [](const json& item) { return item.is_string(); });
  if (!value.is_string() && !list)
    throw cell_error("expected a figure such as \"samples_per_second\", a list of figures, or a text with figures in "
                     "braces");
  const bool text = value.is_string() && value.get_ref<const std::string&>().find_first_of("{}") != std::string::npos;
  cell_template t;
  if (text) {
    t = text_template(value);
  } else {
    const json figures = list ? value : json::array({value});
    for (const json& figure : figures) t.figures.push_back(figure_of(figure));
    t.texts.assign(t.figures.size() + 1, "/");
    t.texts.front() = t.texts.back() = "";
  }
  if (ratio && !text)
    for (cell_figure& f : t.figures)
      if (f.is == cell_figure::style::number && f.decimals < 0) f.is = cell_figure::style::ratio;
  const bool has_ratio =
      std::ranges::any_of(t.figures, [](const cell_figure& f) { return f.is == cell_figure::style::ratio; });
  if (ratio && !has_ratio) throw cell_error("expected a ratio for ratio_to, such as {samples_per_second:x}, got none");
  if (has_ratio && !ratio)
    throw cell_error("expected ratio_to beside a ratio (:x), such as ratio_to = "
                     "{ \"cluster.workers\" = 1 }");
  return t;
}

} // namespace regatta

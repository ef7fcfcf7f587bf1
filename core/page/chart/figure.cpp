// SPDX-License-Identifier: Apache-2.0
#include "page/chart/figure.hpp"

#include <fmt/format.h>

#include "page/chart/look.hpp"
#include "report/text_table.hpp"

namespace regatta::page {

std::string fitted(const std::string& text, double width, double size) {
  std::size_t columns = display_width(text);
  std::string cut = text;
  while (columns > 1 && text_width(cut, size) > width) cut = shortened(text, --columns);
  return cut;
}

double draw_head(svg& drawing, const std::string& title, const std::vector<legend_entry>& legend, legend_key key) {
  double y = 16;
  drawing.text(0, y, fitted(title, figure_width, 13), svg::anchor::start, "title");
  if (legend.size() < 2) return y + 6;
  constexpr double gap = 14, line = 16;
  const double key_width = key == legend_key::block ? 15 : 22;
  double x = 0;
  y += 18;
  for (const auto& [name, index] : legend) {
    const std::string text = fitted(name, figure_width - key_width);
    const double width = key_width + text_width(text);
    if (x > 0 && x + width > figure_width) {
      x = 0;
      y += line;
    }
    drawing.begin_group(colour_class(index));
    if (key == legend_key::block)
      drawing.rect(x, y - 9, 10, 10, "bar");
    else
      drawing.line(x, y - 4, x + 16, y - 4, "l");
    if (key == legend_key::marked_line) drawing.marker(x + 8, y - 4, index);
    drawing.end_group();
    drawing.text(x + key_width, y, text);
    x += width + gap;
  }
  return y + 6;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

} // namespace regatta::page

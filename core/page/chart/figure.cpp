// SPDX-License-Identifier: Apache-2.0
#include "page/chart/figure.hpp"

#include <algorithm>

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

double draw_head(svg& drawing, const std::string& title, const std::vector<legend_entry>& legend, legend_key key,
                 double width) {
  double y = 16;
  drawing.text(0, y, fitted(title, width, 13), svg::anchor::start, "title");
  if (legend.size() < 2) return y + 6;
  constexpr double gap = 14, line = 16;
  const double key_width = key == legend_key::block ? 15 : 22;
  double x = 0;
  y += 18;
  for (const auto& [name, index] : legend) {
    const std::string text = fitted(name, width - key_width);
    const double needed = key_width + text_width(text);
    if (x > 0 && x + needed > width) {
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
    x += needed + gap;
  }
  return y + 6;
}

void draw_tick_texts(svg& drawing, const scale& x, double y, double width) {
  const std::vector<tick>& ticks = x.ticks();
  const auto half = [&](std::size_t i) { return text_width(ticks[i].text) / 2; };
  const auto place = [&](std::size_t i) { return std::min(x.at(ticks[i].value), width - half(i)); };
  constexpr double gap = 6;
  const auto overlap = [&](std::size_t a, std::size_t b) { return place(a) + half(a) + gap > place(b) - half(b); };
  std::size_t every = 1;
  const auto crowded = [&] {
    for (std::size_t i = every; i < ticks.size(); i += every)
      if (overlap(i - every, i)) return true;
    return false;
  };
  while (x.regular() && crowded()) ++every;
  std::size_t last = 0;
  for (std::size_t i = 0; i < ticks.size(); i += every) {
    if (i > 0 && overlap(last, i)) continue;
    drawing.text(place(i), y, ticks[i].text, svg::anchor::middle, "dim");
    last = i;
  }
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

} // namespace regatta::page

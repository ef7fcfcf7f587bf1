// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/markup.hpp"
#include "page/sections.hpp"

namespace regatta::page {

void writer::heading(const std::string& text, const std::string& id) {
  markup_ += fmt::format("<h2 id=\"{}{}\">{}</h2>\n", prefix_, id, markup_text(text));
}

void writer::subheading(const std::string& text) {
  markup_ += fmt::format("<h3>{}</h3>\n", markup_text(text));
}

void writer::paragraph(const std::string& text) {
  markup_ += fmt::format("<p>{}</p>\n", markup_text(text));
}

void writer::figures(std::vector<std::optional<figure>> drawn, const std::string& text) {
  std::string all;
  for (std::optional<figure>& f : drawn) {
    if (!f) continue;
    f->name = prefix_ + f->name;
    all += fmt::format("<figure id=\"{}\">\n{}</figure>\n", f->name, f->drawing.element(f->width, f->height, f->title));
    figures_.push_back(std::move(*f));
  }
  if (all.empty()) return;
  markup_ += "<div class=\"figures\">\n" + all + "</div>\n";
  if (!text.empty()) markup_ += fmt::format("<p class=\"note\">{}</p>\n", markup_text(text));
}

} // namespace regatta::page

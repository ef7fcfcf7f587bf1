// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include "base/markup.hpp"
#include "page/sections.hpp"

namespace regatta::page {
namespace {

// Names of figures are names of files and anchors; keys and operations in them come from the document.
bool is_of_a_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

} // namespace

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
    std::replace_if(
        f->name.begin(), f->name.end(), [](char c) { return !is_of_a_name(c); }, '_');
    all += fmt::format("<figure id=\"figure-{}\">\n{}</figure>\n", f->name,
                       f->drawing.element(f->width, f->height, f->title));
    figures_.push_back(std::move(*f));
  }
  if (all.empty()) return;
  markup_ += "<div class=\"figures\">\n" + all + "</div>\n";
  if (!text.empty()) markup_ += fmt::format("<p class=\"note\">{}</p>\n", markup_text(text));
}

} // namespace regatta::page

// SPDX-License-Identifier: Apache-2.0
#include "page/chart/svg.hpp"

#include <cmath>

#include <fmt/format.h>

#include "base/text.hpp"
#include "files/markup.hpp"
#include "page/chart/look.hpp"

namespace regatta::page {
namespace {

std::string css_attribute(std::string_view css) {
  return css.empty() ? "" : fmt::format(" class=\"{}\"", css);
}

std::string tip_element(std::string_view tip) {
  return tip.empty() ? "" : fmt::format("<title>{}</title>", markup_text(tip));
}

} // namespace

std::string coordinate(double value) {
  const double tenths = std::round(value * 10);
  if (tenths == 0) return "0"; // never "-0"
  return std::fmod(tenths, 10) == 0 ? fmt::format("{:.0f}", tenths / 10) : fmt::format("{:.1f}", tenths / 10);
}

void course::move(double x, double y) {
  x_ = std::round(x / grid_) * grid_;
  y_ = std::round(y / grid_) * grid_;
  text_ += fmt::format("M{} {}", coordinate(x_), coordinate(y_));
}

void course::line(double x, double y) {
  const double to_x = std::round(x / grid_) * grid_, to_y = std::round(y / grid_) * grid_;
  const std::string down = coordinate(to_y - y_);
  text_ += fmt::format("l{}{}{}", coordinate(to_x - x_), down.starts_with('-') ? "" : " ", down);
  x_ = to_x;
  y_ = to_y;
}

double text_width(std::string_view text, double size) {
  double ems = 0;
  while (!text.empty()) {
    const std::size_t bytes = std::max<std::size_t>(utf8_sequence(text), 1);
    const char c = text[0];
    const bool narrow = bytes == 1 && std::string_view(" .,:;|!'ijltfr()[]").find(c) != std::string_view::npos;
    const bool wide = bytes >= 3 || (bytes == 1 && std::string_view("mwMW@%").find(c) != std::string_view::npos);
    ems += narrow ? 0.36 : wide ? 0.96 : c >= 'A' && c <= 'Z' ? 0.7 : 0.6;
    text.remove_prefix(bytes);
  }
  return ems * size;
}

void svg::text(double x, double y, std::string_view text, anchor at, std::string_view css,
               std::string_view attributes) {
  const char* const side = at == anchor::start    ? ""
                           : at == anchor::middle ? " text-anchor=\"middle\""
                                                  : " text-anchor=\"end\"";
  body_ += fmt::format("<text x=\"{}\" y=\"{}\"{}{}{}{}>{}</text>\n", coordinate(x), coordinate(y), side,
                       css_attribute(css), attributes.empty() ? "" : " ", attributes, markup_text(text));
}

void svg::line(double x1, double y1, double x2, double y2, std::string_view css) {
  path(fmt::format("M{} {}L{} {}", coordinate(x1), coordinate(y1), coordinate(x2), coordinate(y2)), css);
}

void svg::rect(double x, double y, double width, double height, std::string_view css, std::string_view tip) {
  body_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{}", coordinate(x), coordinate(y),
                       coordinate(width), coordinate(height), css_attribute(css));
  body_ += tip.empty() ? "/>\n" : ">" + tip_element(tip) + "</rect>\n";
}

void svg::shade(double x, double y, double width, double height, double opacity, std::string_view tip,
                std::string_view attributes) {
  body_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"bar\" fill-opacity=\"{:.2f}\"{}{}",
                       coordinate(x), coordinate(y), coordinate(width), coordinate(height), opacity,
                       attributes.empty() ? "" : " ", attributes);
  body_ += tip.empty() ? "/>\n" : ">" + tip_element(tip) + "</rect>\n";
}

void svg::path(std::string_view commands, std::string_view css, std::string_view tip) {
  body_ += fmt::format("<path d=\"{}\"{}", commands, css_attribute(css));
  body_ += tip.empty() ? "/>\n" : ">" + tip_element(tip) + "</path>\n";
}

void svg::marker(double x, double y, std::size_t shape, std::string_view tip, std::string_view attributes) {
  body_ += fmt::format("<use href=\"#{}\" x=\"{}\" y=\"{}\"{}{}", marker_id(shape), coordinate(x), coordinate(y),
                       attributes.empty() ? "" : " ", attributes);
  body_ += tip.empty() ? "/>\n" : ">" + tip_element(tip) + "</use>\n";
}

void svg::begin_group(std::string_view css) {
  body_ += fmt::format("<g{}>", css_attribute(css));
}

std::string svg::element(double width, double height, std::string_view name) const {
  return fmt::format("<svg class=\"chart\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n{}</svg>\n",
                     coordinate(width), coordinate(height), markup_text(name), body_);
}

std::string svg::file(double width, double height, std::string_view name) const {
  return fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" width=\"{0}\" height=\"{1}\" "
                     "viewBox=\"0 0 {0} {1}\" role=\"img\">\n<title>{2}</title>\n<style>{3}</style>\n"
                     "{4}<rect width=\"100%\" height=\"100%\" style=\"fill:var(--page)\"/>\n{5}</svg>\n",
                     coordinate(width), coordinate(height), markup_text(name), chart_style(), marker_definitions(),
                     body_);
}

} // namespace regatta::page

// SPDX-License-Identifier: Apache-2.0
#include "page/writer.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "files/markup.hpp"
#include "report/text_table.hpp"

namespace regatta::page {
namespace {

// Names of figures are names of files and anchors; keys and operations in them come from the document.
bool is_of_a_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

// Returns a text in one line of Markdown.
std::string line_of(const std::string& text) {
  return markdown_text(one_line(text));
}

std::string joined_markup(const std::vector<std::vector<phrase>>& sentences) {
  std::string out;
  for (const auto& sentence : sentences) {
    if (!out.empty()) out += " · ";
    for (const phrase& p : sentence)
      out += p.attributes.empty() ? markup_text(p.text)
                                  : fmt::format("<span {}>{}</span>", p.attributes, markup_text(p.text));
  }
  return out;
}

std::string joined_text(const std::vector<std::vector<phrase>>& sentences) {
  std::string out;
  for (const auto& sentence : sentences) {
    if (!out.empty()) out += "; ";
    for (const phrase& p : sentence) out += markdown_text(cleaned(p.text)); // keeps the blanks around numbers
  }
  return out;
}

// Returns a text between fences, which are longer than any run of backticks in it.
std::string fenced(const std::string& text) {
  std::size_t longest = 2, run = 0;
  for (const char c : text) longest = std::max(longest, run = c == '`' ? run + 1 : 0);
  const std::string fence(longest + 1, '`');
  std::string lines; // without control characters
  for (const std::string& line : lines_of(text)) lines += cleaned(line) + "\n";
  return fence + "\n" + lines + fence + "\n\n";
}

} // namespace

void writer::begin_document(std::size_t number, const std::string& title, const std::string& about) {
  markup_ += fmt::format("<article data-document=\"{}\">\n<h1>{}</h1>\n<p class=\"about\">{}</p>\n", number,
                         markup_text(title), markup_text(about));
  markdown_ += fmt::format("{}# {}\n\n{}\n\n", markdown_.empty() ? "" : "\n", line_of(title), line_of(about));
}

void writer::navigation(const std::vector<std::pair<const char*, const char*>>& places) {
  markup_ += "<nav>";
  for (const auto& [id, text] : places)
    markup_ += fmt::format("<a href=\"#{}{}\">{}</a>", prefix_, id, markup_text(text));
  markup_ += "</nav>\n";
}

void writer::heading(const std::string& text, const std::string& id) {
  markup_ += fmt::format("<h2 id=\"{}{}\">{}</h2>\n", prefix_, id, markup_text(text));
  markdown_ += "## " + line_of(text) + "\n\n";
}

void writer::subheading(const std::string& text) {
  markup_ += fmt::format("<h3>{}</h3>\n", markup_text(text));
  markdown_ += "### " + line_of(text) + "\n\n";
}

void writer::paragraph(const std::string& text) {
  markup_ += fmt::format("<p>{}</p>\n", markup_text(text));
  markdown_ += line_of(text) + "\n\n";
}

void writer::note(const std::string& text) {
  markup_ += fmt::format("<p class=\"note\">{}</p>\n", markup_text(text));
  markdown_ += line_of(text) + "\n\n";
}

void writer::preformatted(const std::string& text) {
  markup_ += fmt::format("<pre>{}</pre>\n", markup_text(text));
  markdown_ += fenced(text);
}

void writer::facts(const std::vector<fact>& lines) {
  markup_ += "<dl class=\"facts\">\n";
  for (const fact& f : lines) {
    if (f.sentences.empty() && f.list.empty()) continue;
    std::string list;
    for (const std::string& text : f.list) list += fmt::format("<li>{}</li>", markup_text(text));
    markup_ += fmt::format("<dt>{}</dt><dd{}>{}{}</dd>\n", markup_text(f.name),
                           f.css.empty() ? "" : fmt::format(" class=\"{}\"", f.css), joined_markup(f.sentences),
                           list.empty() ? "" : "<ul>" + list + "</ul>");
    markdown_ += fmt::format("* {}:{}{}\n", line_of(f.name), f.sentences.empty() ? "" : " ", joined_text(f.sentences));
    for (const std::string& text : f.list) markdown_ += "  * " + line_of(text) + "\n";
  }
  markup_ += "</dl>\n";
  markdown_ += "\n";
}

void writer::table(const page_table& table) {
  markup_ += markup_of(table);
  markdown_ += markdown_of(table);
}

void writer::figures(std::vector<std::optional<figure>> drawn, const std::string& text) {
  std::string all, links;
  for (std::optional<figure>& f : drawn) {
    if (!f) continue;
    f->name = prefix_ + f->name;
    std::replace_if(
        f->name.begin(), f->name.end(), [](char c) { return !is_of_a_name(c); }, '_');
    all += fmt::format("<figure id=\"figure-{}\"{}>\n{}</figure>\n", f->name,
                       f->width > figure_width ? " class=\"broad\"" : "",
                       f->drawing.element(f->width, f->height, f->title));
    links += fmt::format("![{}](<{}/{}.svg>)\n", line_of(f->title), figure_folder_, f->name);
    figures_.push_back(std::move(*f));
  }
  if (all.empty()) return;
  markup_ += "<div class=\"figures\">\n" + all + "</div>\n";
  if (!text.empty()) markup_ += fmt::format("<p class=\"note\">{}</p>\n", markup_text(text));
  if (figure_folder_.empty()) return;
  markdown_ += links + "\n";
  if (!text.empty()) markdown_ += line_of(text) + "\n\n";
}

void writer::begin_details(const std::string& summary) {
  markup_ += fmt::format("<details><summary>{}</summary>\n", markup_text(summary));
  markdown_ += fmt::format("<details><summary>{}</summary>\n\n", markup_text(one_line(summary)));
}

void writer::end_details() {
  markup_ += "</details>\n";
  markdown_ += "</details>\n\n";
}

} // namespace regatta::page

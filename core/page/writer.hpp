// SPDX-License-Identifier: Apache-2.0
//
// A page in the making, as markup and as Markdown: both have the same parts in the same order.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "page/chart/figure.hpp"
#include "page/table.hpp"

namespace regatta::page {

// A phrase of a sentence. A number has its place in the document as attributes (data_attributes()), which are markup.
struct phrase {
  std::string text, attributes;
};

// A line of a list of facts: a name, sentences, and a list of texts below them.
struct fact {
  std::string name;
  std::vector<std::vector<phrase>> sentences;
  std::vector<std::string> list;
  std::string css; // "good" or "bad", of the markup; may be empty
};

// All texts are escaped, but phrase::attributes are not. [any]
class writer {
public:
  // Markdown shows a figure by a link to FOLDER/NAME.svg; without a folder it leaves the figures out.
  explicit writer(std::string figure_folder = "") : figure_folder_(std::move(figure_folder)) {}

  // Begins and ends a document of the page, counted from 0: title, and a line about it.
  void begin_document(std::size_t number, const std::string& title, const std::string& about);
  void end_document() { markup_ += "</article>\n"; }
  // Links to the sections, by their ids; only in the markup.
  void navigation(const std::vector<std::pair<const char*, const char*>>& places);

  // `id` is the anchor of the heading, behind set_prefix().
  void heading(const std::string& text, const std::string& id);
  void subheading(const std::string& text);
  void paragraph(const std::string& text);
  void note(const std::string& text); // a paragraph in small print
  void preformatted(const std::string& text);
  void facts(const std::vector<fact>& lines); // leaves out those without sentences and list
  void table(const page_table& table);
  // Places figures side by side where the page is wide enough. The text explains them; it may be empty.
  void figures(std::vector<std::optional<figure>> drawn, const std::string& text);
  // Encloses what a reader opens by a click on the summary.
  void begin_details(const std::string& summary);
  void end_details();

  // Names of figures and anchors begin with this from now on, so that those of several results on a page differ. In
  // names of figures, characters other than letters, digits, '-' and '_' become '_'.
  void set_prefix(const std::string& prefix) { prefix_ = prefix; }

  const std::string& markup() const { return markup_; }
  const std::string& markdown() const { return markdown_; }
  std::vector<figure> take_figures() { return std::move(figures_); }

private:
  std::string figure_folder_, markup_, markdown_, prefix_;
  std::vector<figure> figures_;
};

} // namespace regatta::page

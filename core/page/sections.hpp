// SPDX-License-Identifier: Apache-2.0
//
// The sections of a page, in the order in which a person asks. Each is a function of the result that appends markup and
// figures.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "page/chart/figure.hpp"
#include "page/view.hpp"

namespace regatta::page {

// The markup of a page in the making, and its figures.
class writer {
public:
  void raw(const std::string& markup) { markup_ += markup; }
  // heading(), subheading() and paragraph() escape the text. `id` is the anchor of the heading, behind prefix().
  void heading(const std::string& text, const std::string& id);
  void subheading(const std::string& text);
  void paragraph(const std::string& text);
  // Places figures side by side where the page is wide enough. The text explains them; it may be empty.
  void figures(std::vector<std::optional<figure>> drawn, const std::string& text);
  // Names of figures and anchors begin with this, so that those of several results on a page differ.
  void set_prefix(const std::string& prefix) { prefix_ = prefix; }
  const std::string& prefix() const { return prefix_; }

  const std::string& markup() const { return markup_; }
  std::vector<figure> take_figures() { return std::move(figures_); }

private:
  std::string markup_, prefix_;
  std::vector<figure> figures_;
};

// The first section: the experiment, the machine, and whether to trust the result.
void write_trust(writer& w, const result_view& r);
// The claims of the experiment with their verdicts; nothing if it has none.
void write_claims(writer& w, const result_view& r);
// How fast, and how well it scaled.
void write_speed(writer& w, const result_view& r);
// Why it is not faster: causes of lost efficiency, bytes and processor time.
void write_losses(writer& w, const result_view& r);
// The steps by rank and over the run.
void write_steps(writer& w, const result_view& r);
// Loss and metric over steps, time and bytes.
void write_learning(writer& w, const result_view& r);
// How to run it again. `toml`: the resolved experiment as text; empty: unknown.
void write_again(writer& w, const nlohmann::json& context, const std::string& toml);
// Results of `regatta comm` (schema regatta.comm/1).
void write_comm(writer& w, const nlohmann::json& document);

} // namespace regatta::page

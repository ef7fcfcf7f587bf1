// SPDX-License-Identifier: Apache-2.0
//
// Shows results as one HTML page: readable without scripts, on paper and in a mail, and without any network request.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "page/chart/figure.hpp"
#include "timeline/rank_trace.hpp"

namespace regatta::page {

// Returns the trace of a run of a case, by its index in "results"; empty if there is none. If it cannot be read, throws
// failure, whose text the page then shows in place of the trace.
using trace_source = std::function<std::vector<rank_trace>(std::size_t of_case)>;

// A document to show: schema regatta.result/1 or regatta.comm/1.
struct source {
  nlohmann::json document;
  std::string toml;         // its first case as resolved TOML; empty: unknown
  trace_source traces = {}; // empty: there are none
};

struct page {
  std::string html, markdown;  // the same sections in the same order
  std::vector<figure> figures; // those of the page; each can be a file of its own
};

// [any] Returns the page of the documents in this order. Its size as HTML is about 3 kB for each case and at least
// 20 kB. Markdown shows the figures by links to `figure_folder`/NAME.svg, or without a folder leaves them out.
// Throws std::out_of_range if there is no document, nlohmann::json::exception if one is invalid.
page render_page(const std::vector<source>& sources, const std::string& figure_folder = "");

} // namespace regatta::page

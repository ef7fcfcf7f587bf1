// SPDX-License-Identifier: Apache-2.0
//
// Shows results as one HTML page: readable without scripts, on paper and in a mail, and without any network request.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "page/chart/figure.hpp"

namespace regatta::page {

// A document to show: schema regatta.result/1 or regatta.comm/1.
struct source {
  nlohmann::json document;
  std::string toml; // its first case as resolved TOML; empty: unknown
};

struct page {
  std::string html;
  std::vector<figure> figures; // those of the page; each can be a file of its own
};

// [any] Returns the page of the documents in this order. Its size is about 3 kB for each case and at least 20 kB.
// Requires valid documents, at least one: others throw nlohmann::json::exception.
page render_page(const std::vector<source>& sources);

} // namespace regatta::page

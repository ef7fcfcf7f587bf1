// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "config/cell_template.hpp"

namespace regatta {

// Figures that others have published: a row of a table.
struct published_row {
  std::string name, source;
  // By the text of a column: a number; a text; or an array, with one for each figure or for each value of `list`.
  nlohmann::json values;
  bool ratio = false; // its ratios are computed from its own figures
};

// A table that [report] asks for.
struct report_request {
  std::string title;         // may be empty
  std::string rows, columns; // keys
  std::string list;          // key whose values stand side by side in a cell; empty: none
  cell_template cell;
  nlohmann::json where = nlohmann::json::object();    // values of keys: only these cases are shown
  nlohmann::json ratio_to = nlohmann::json::object(); // values of keys: the reference of ratios
  nlohmann::json labels = nlohmann::json::object();   // other words for keys, figures and texts of rows and columns
  std::vector<published_row> context;

  // Return what the table calls a key or figure; a text of its rows and columns.
  std::string name_of(const std::string& path) const;
  std::string label_of(const std::string& text) const;
  // Returns values of keys, such as `where`, as text: "workers 1, model vgg16".
  std::string text_of(const nlohmann::json& values) const;
};

// [any] Returns the tables that context.experiment.report of a result asks for. Earlier versions wrote one object, with
// empty members if there was no [report]: tables without rows, columns or a value are left out. Throws cell_error if a
// value is no template.
std::vector<report_request> report_requests(const nlohmann::json& result);

} // namespace regatta

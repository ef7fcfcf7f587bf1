// SPDX-License-Identifier: Apache-2.0
//
// Formats a result (schema regatta.result/1) for people or programs. Pure functions of the document.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace regatta {

enum class format { console, markdown, csv, json };
// Takes "console", "markdown", "csv", "json"; std::nullopt for other names.
std::optional<format> format_named(std::string_view name);

struct render_options {
  std::size_t width = 0; // columns of the terminal, for format::console; 0: unlimited
  std::string path;      // path of result.json; console and markdown show it if it is not empty
};

// Returns the whole document, ending in a newline. CSV and JSON also contain the value of the key report.value
// (with_report()). Bytes that are not UTF-8 are replaced. Requires a valid result: other documents throw
// nlohmann::json::exception.
std::string render(const nlohmann::json& result, format f, const render_options& options = {});

// Parts of render(), which tests and other reports use directly.
std::string render_csv(const nlohmann::json& result); // one row per case, JSON paths as headers
// Returns a table with a title for each combination of the swept values that are neither [report]'s rows nor its
// columns; the cells are [report]'s value. Divides a table into blocks of columns if it is wider than `width` (0:
// never). Empty if [report] lacks rows, columns or value.
std::string render_pivot(const nlohmann::json& result, bool markdown, std::size_t width = 0);

} // namespace regatta

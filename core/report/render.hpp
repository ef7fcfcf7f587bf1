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
std::optional<format> format_named(std::string_view name); // "console", ...

struct render_options {
  std::size_t width = 0; // of the terminal; 0: unlimited
  std::string path;      // path of result.json; shown if not empty
};

// Returns the whole document, ending in a newline. Bytes that are not UTF-8 are replaced.
std::string render(const nlohmann::json& result, format f, const render_options& options = {});

// Parts of render(), which tests and other reports use directly.
std::string render_csv(const nlohmann::json& result); // one row per case, JSON paths as headers
// Returns the table that [report] asks for: one for each combination of the other swept values, in blocks of columns if
// `width` (0: any) is too small. Empty if [report] asks for none.
std::string render_pivot(const nlohmann::json& result, bool markdown, std::size_t width = 0);

} // namespace regatta

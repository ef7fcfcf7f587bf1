// SPDX-License-Identifier: Apache-2.0
//
// A result (schema regatta.result/1) as a person or a program reads it. Pure functions of the document.
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
  std::size_t width = 0; // of the terminal; 0: as wide as it takes
  std::string path;      // where result.json lies; shown if not empty
};

// The whole document, ended by a newline. A text that is no UTF-8 does not stop it.
std::string render(const nlohmann::json& result, format f, const render_options& options = {});

// Parts of the above, which tests and other reports use on their own.
std::string render_csv(const nlohmann::json& result); // one row a case, JSON paths as headers
// The table that [report] asks for: one for each combination of what else was swept, in blocks of columns where `width`
// (0: any) is too narrow. Empty if it asks for none.
std::string render_pivot(const nlohmann::json& result, bool markdown, std::size_t width = 0);

} // namespace regatta

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

enum class format { console, markdown, csv, json, latex };
// Takes "console", "markdown", "csv", "json"; std::nullopt for other names.
std::optional<format> format_named(std::string_view name);
// Takes "latex" too.
std::optional<format> result_format_named(std::string_view name);

struct render_options {
  std::size_t width = 0; // columns of the terminal, for format::console; 0: unlimited
  std::string path;      // path of result.json; console and markdown show it if it is not empty
};

// Returns the whole document, ending in a newline. CSV is render_csv(repeat_rows()). JSON is `result`, where each entry
// has a member "report", an array of {"path", "value", "unit", "scope"}, if a [report] names figures. LaTeX has the
// table of all cases and those of [report], each with a caption, for the package booktabs. Bytes that are not UTF-8 are
// replaced. Requires a valid result: other documents throw nlohmann::json::exception.
std::string render(const nlohmann::json& result, format f, const render_options& options = {});

// Parts of render(), which tests and other reports use directly.
// Returns a row for each element of "results", with the paths of its members as headers.
std::string render_csv(const nlohmann::json& result);
// Returns {"results": rows} for render_csv(): a row for each repeat of a case, and one for a case without repeats. A
// row has the members of the case's entry, without curves and single steps; "repeat", its number from 1; and as "run"
// the figures of this repeat, with those that compare it with its own baseline. A case without repeats has null as
// "repeat" and no "run".
nlohmann::json repeat_rows(const nlohmann::json& result);
// Returns pivot_tables() (pivot.hpp) as text. A table that is wider than `width` (0: any) is divided into blocks of
// columns. Empty if [report] asks for no table.
std::string render_pivot(const nlohmann::json& result, bool markdown, std::size_t width = 0);

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// Reads [report] and [[report]]: tables of a result in the form of a publication. They are no part of the experiment:
// the same measurements can be shown in any of them.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include <nlohmann/json.hpp>

#include "config/diagnostics.hpp"
#include "config/toml_document.hpp"

namespace regatta {

// Returns true if a path names a key of the experiment, whose values can head rows and columns.
using is_key = std::function<bool(const std::string& path)>;

// [any] Returns an array with an object for each table, with the members that the file gives it, as context.experiment
// in result.json has it. `node` is the value of "report" in a file: a table, or an array of tables. Keys of nested
// tables are joined ("cluster.workers"). Positions 0:0 are reported as those of the option --set. Adds each error to
// `wrong`; the result is then unusable.
nlohmann::json parse_reports(const toml_node& node, const is_key& key, diagnostics& wrong);

// [any] Returns the tables of a file, which may have other sections, which are ignored. Throws failure (usage) with all
// errors of the tables, and if the file has none or cannot be read.
nlohmann::json load_reports(const std::filesystem::path& file, const is_key& key);

// [any] Returns the reference of all keys of [report] for a terminal.
std::string reports_text();

} // namespace regatta

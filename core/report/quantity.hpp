// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace regatta {

// Unit and scope of a figure.
struct quantity {
  std::string unit; // "images/s"; "ratio"; "none" for a value that is no known figure; empty: unknown
  // "global": of the whole run; "rank": of one worker or server, a mean unless the name says otherwise
  std::string scope;
};

// Returns unit and scope of the figure at `path` of an entry of result.json's "results", whether or not the entry has
// it. A unit that the entry states itself takes precedence, so cases of different models have different units.
quantity quantity_of(const nlohmann::json& entry, const std::string& path);

// Returns `result` with a member "report" in every entry: an array of {"path", "value", "unit", "scope"} for each
// figure that a [report] names. "value" is null for an entry without figures; "unit" is null if it is unknown. Changes
// nothing if no [report] names a figure. Throws cell_error as report_requests() does.
nlohmann::json with_report(nlohmann::json result);

} // namespace regatta

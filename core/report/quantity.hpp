// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace regatta {

struct quantity {
  std::string unit; // "images/s"; "ratio" or "none" if it has none; empty: unknown
  // "global": of the whole run; "rank": of one worker or server, a mean unless the name says otherwise
  std::string scope;
};

// Returns unit and scope of the figure at `path` of an entry of result.json's "results". A unit that the entry states
// itself takes precedence, so cases of different models have different units.
quantity quantity_of(const nlohmann::json& entry, const std::string& path);

// Adds `report` to every entry: {"path", "value", "unit", "scope"} of the figure that [report] names. Changes nothing
// if it names none.
nlohmann::json with_report(nlohmann::json result);

} // namespace regatta

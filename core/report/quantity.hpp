// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace regatta {

struct quantity {
  std::string unit;  // "images/s"; "ratio" or "none" where it has none; empty: not known
  std::string scope; // "global": of the whole run; "rank": of one worker or server, as a mean unless the name says else
};

// Unit and scope of the figure at `path` of an entry of result.json's "results". A unit that the entry itself states
// counts first, so cases of different models have units of their own.
quantity quantity_of(const nlohmann::json& entry, const std::string& path);

// Adds to every entry `report`: {"path", "value", "unit", "scope"} of the figure that [report] asks for; nothing where
// it asks for none.
nlohmann::json with_report(nlohmann::json result);

} // namespace regatta

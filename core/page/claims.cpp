// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <nlohmann/json.hpp>

#include "page/sections.hpp"
#include "page/table.hpp"
#include "report/claims_table.hpp"

namespace regatta::page {

void write_claims(writer& w, const result_view& r) {
  const nlohmann::json claims = r.document().value("claims", nlohmann::json::array());
  if (claims.empty()) return;
  w.heading("Claims", "claims");
  page_table table;
  table.keys = 1;
  for (const char* header : {"claim", "bounds", "value", "from–to", "repeats", "verdict"})
    table.columns.push_back({header, "", "", false});
  for (const nlohmann::json& claim : claims)
    table.rows.push_back({{{claim_name(claim), nullptr, ""},
                           {claim_bounds(claim), nullptr, ""},
                           {claim_value(claim), nullptr, ""},
                           {claim_interval(claim), nullptr, ""},
                           {std::to_string(claim.at("repeats").get<std::size_t>()), nullptr, ""},
                           {claim_verdict(claim), nullptr, ""}},
                          ""});
  w.table(table);
  w.paragraph(
      "A value is left / right, or the figure of one case. A claim holds or fails if that is significant at 5 % "
      "over all claims (Holm); else it is undecided.");
}

} // namespace regatta::page

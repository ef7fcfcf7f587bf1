// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/cases.hpp"

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta {

struct claims_read {
  // An array with an object for each claim:
  //   left, right         the swept values of one case, as "case" of its entry in result.json has them; right may be
  //                       null
  //   metric              one of compared_paths()
  //   at_least, at_most   bounds of left / right, or of left if right is null: above 0; null, but not both
  //   across              those of comparable_parts() in which left and right may differ
  //   text                null if the file has none
  nlohmann::json claims = nlohmann::json::array();
  std::vector<std::string> notices; // "FILE:LINE:COL: notice: ..." of claims that options of the command line removed
};

// [any] Reads [[claim]]. A side is a table of keys as in [sweep], such as { strategy.plugin = "dgc" }, and must select
// exactly one of `cases` (at least one). Adds each error to `wrong`. A side that selects no or several cases is an
// error; but if options of the command line changed the experiment, its claim is left out with a notice. `file` is the
// file's name in messages.
claims_read read_claims(const settings& all, const catalogue& components, const folders& start,
                        const std::vector<case_config>& cases, const std::string& file, diagnostics& wrong);

} // namespace regatta

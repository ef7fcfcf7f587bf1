// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace regatta {

struct compare_options {
  std::vector<std::string> results; // files, or folders with a result.json
  std::vector<std::string> gates;   // "samples_per_second -3%": fails if B is more than 3 % below A
  std::vector<std::string> across;  // parts of the fingerprint that may differ (comparable_parts()): "model,data"
  std::string format = "console";
};
// Runs `regatta compare`. Returns 0, or 5 (gate) if a gate failed. Throws failure (usage) if a file is no result, if an
// option is wrong, or if there is only one result and it has fewer than two cases. [main]
int compare_verb(const compare_options& o);

struct history_options {
  std::string folder; // searched for result.json at any depth
  std::string figure = "samples_per_second", format = "console";
};
// Runs `regatta history`. Returns 0. A result.json that is no result is left out with a warning. Throws failure (usage)
// if the folder cannot be read, if it has no result, or if an option is wrong. [main]
int history_verb(const history_options& o);

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace regatta {

struct compare_options {
  std::vector<std::string> results; // files, or folders with a result.json
  std::vector<std::string> gates, across;
  std::string format = "console";
};
// Runs `regatta compare`. Returns 0, or 5 (gate) if a gate failed. Throws failure (usage) if a file is no result or an
// option is wrong. [main]
int compare_verb(const compare_options& o);

struct history_options {
  std::string folder; // its results, and those of the folders in it
  std::string figure = "samples_per_second", format = "console";
};
// Runs `regatta history`. Returns 0. Throws failure (usage) as compare_verb(), also if there is no result. [main]
int history_verb(const history_options& o);

} // namespace regatta

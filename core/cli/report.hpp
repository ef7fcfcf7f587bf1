// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace regatta {

struct report_options {
  std::vector<std::string> results; // files, or folders with a result.json
  std::string format;               // empty: by the ending of `out`, else console
  std::string out;                  // file; empty: standard output
  std::string report;               // TOML file whose [report] tables are shown; empty: those of the result
  std::string figures;              // folder for the figures of the page; empty: none
};

// Runs `regatta report`: shows stored results in a format. Returns 0. Throws failure: usage if a file is no result, the
// options do not fit or the folder of figures cannot be made, run if a file cannot be written. [main]
int report_verb(const report_options& o);

} // namespace regatta

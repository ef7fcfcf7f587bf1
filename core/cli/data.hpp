// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/experiment.hpp"

#include <string>

namespace regatta {

// Runs `regatta data make FORMAT DIR`: writes learnable data. Returns 0. Throws failure (usage: unknown format, or the
// folder is not empty; run: cannot write). [main]
int make_data_verb(const std::string& format, const std::string& folder);

// Returns a line for each format with a description of its data, for help.
std::string formats_of_data();

// Writes the data that cases with data.generate lack, and reports that on standard error. Throws failure as
// data_to_generate and make_data do. [main]
void generate_data(const experiment& e);

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/experiment.hpp"

#include <string>

namespace regatta {

// `regatta data make FORMAT DIR`: writes learnable data. Returns 0; throws failure (usage: no such format, or the folder
// is not empty; run: it cannot be written). [main]
int make_data_verb(const std::string& format, const std::string& folder);

// The formats with what is written of each, a line each: for help.
std::string formats_of_data();

// Makes what cases with data.generate lack, and says so on standard error. Throws failure as data_to_generate and
// make_data do. [main]
void generate_data(const experiment& e);

} // namespace regatta

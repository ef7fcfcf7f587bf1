// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "experiment/experiment.hpp"

#include <functional>
#include <string>

namespace regatta {

// Runs `regatta data make FORMAT DIR`: writes generated data that a model can learn, always the same, and prints what
// it wrote. Returns 0. Throws failure: usage if the format is unknown or the folder is not empty, run if it cannot
// write. [main]
int make_data_verb(const std::string& format, const std::string& folder);

// Returns a line for each format with a description of its data, for --help.
std::string formats_of_data();

// Writes the data that cases with data.generate lack, and calls `say` with a text before. Throws failure: usage if the
// format has no generator, data.path would not name the generated data, or its folder is not empty; run if it cannot
// write. [main]
void generate_data(const experiment& e, const std::function<void(const std::string&)>& say);

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// Finds where keys were written, and which keys have no effect.
#pragma once

#include "config/experiment.hpp"
#include "config/places.hpp"
#include "config/settings.hpp"

#include <string>
#include <utility>
#include <vector>

namespace regatta {

// Returns the positions of all keys and sections outside sweeps; `file` is its name in messages. [any]
places::map written_in(const settings& all, const std::string& file);
// Returns the positions of one case's values of the swept keys. [any]
places::map written_in(const std::vector<std::pair<std::string, const setting*>>& swept, const std::string& file);

// Returns "FILE:LINE:COL: notice: KEY has no effect with ..." for each key that is given and has no effect on any case,
// in the order of the file, then those of options. [any]
std::vector<std::string> without_effect(const settings& all, const std::string& file,
                                        const std::vector<case_config>& cases);

} // namespace regatta

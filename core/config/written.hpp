// SPDX-License-Identifier: Apache-2.0
//
// Where keys were written, and which of them make no difference.
#pragma once

#include "config/experiment.hpp"
#include "config/places.hpp"
#include "config/settings.hpp"

#include <string>
#include <utility>
#include <vector>

namespace regatta {

// Of all keys and sections outside of sweeps; `file` is the name that messages give it. [any]
places::map written_in(const settings& all, const std::string& file);
// Of a case's values of the swept keys. [any]
places::map written_in(const std::vector<std::pair<std::string, const setting*>>& swept, const std::string& file);

// "FILE:LINE:COL: notice: KEY has no effect with ...", in the file's order, options last: of each key that is given and
// makes no difference to any case. [any]
std::vector<std::string> without_effect(const settings& all, const std::string& file,
                                        const std::vector<case_config>& cases);

} // namespace regatta

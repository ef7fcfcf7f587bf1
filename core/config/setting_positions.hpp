// SPDX-License-Identifier: Apache-2.0
//
// Finds where keys were written, and which keys have no effect.
#pragma once

#include "config/settings.hpp"
#include "experiment/experiment.hpp"
#include "experiment/source_positions.hpp"

#include <string>
#include <utility>
#include <vector>

namespace regatta {

// [any] Returns the positions of the sections, and of all given keys that are not swept; `file` is the file's name in
// messages.
source_positions::map written_in(const settings& all, const std::string& file);
// [any] Returns the positions of the swept keys' values in one case.
source_positions::map written_in(const std::vector<std::pair<std::string, const setting*>>& swept,
                                 const std::string& file);

// [any] Returns "FILE:LINE:COL: notice: KEY has no effect with ..." for each key of the schema that is given and has no
// effect on any case, in the order of the file; then "notice: --set KEY ..." or "notice: --sweep KEY ..." for keys from
// options.
std::vector<std::string> without_effect(const settings& all, const std::string& file,
                                        const std::vector<case_config>& cases);

} // namespace regatta

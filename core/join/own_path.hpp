// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace regatta {

// [any] Returns the path on this host of a file that has the path `path` on another one, where Regatta's own plugins
// are in the folder `built_in`: those of this host's installation take their place, wherever it is. Other files have
// the same path on all hosts. `built_in` may be empty.
std::string own_path(const std::string& path, const std::string& built_in);

} // namespace regatta

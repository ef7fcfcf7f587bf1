// SPDX-License-Identifier: Apache-2.0
//
// Aligned columns for `list` and `describe`.
#pragma once

#include <string>
#include <vector>

namespace regatta {

// Lines, two blanks before each, cells padded to the widest of their column; the last cell as it is. `right`: columns
// whose cells are aligned to the right.
std::string aligned(const std::vector<std::vector<std::string>>& rows, const std::vector<std::size_t>& right = {});

} // namespace regatta

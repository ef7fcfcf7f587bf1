// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace regatta {

using blob = std::vector<std::uint8_t>;

} // namespace regatta

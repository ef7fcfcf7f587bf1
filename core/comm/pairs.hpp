// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <nlohmann/json_fwd.hpp>

#include "comm/connection.hpp"

namespace regatta::comm {

// Measures the links between all pairs of ranks as plan::pairs says; collective. Returns the measurements of this rank's
// links to others as {"alone": [link], "at_once": [link], "host": what plan::pairs.hosts asks for}; comm/links.hpp.
// `seconds` of a link that is slow are exceeded: at least three large messages pass in each direction. [main]
nlohmann::json measure_pairs(control_client& control, const plan& p, std::optional<connection>& open);

} // namespace regatta::comm

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <nlohmann/json_fwd.hpp>

#include "comm/connection.hpp"

namespace regatta::comm {

// Measures the links between pairs of ranks as plan::pairs says; collective. Returns the members of a survey
// (comm/survey.hpp), with this rank's links to others only, and "host": check_host() with plan::pairs.hosts, else null.
// A slow link takes longer than pair_plan::seconds: in each direction at least three large messages are timed, or one
// with effort::quick (comm/survey.hpp). `open` is empty before and after. If this throws failure, `open` holds the
// transport: report the failure before it is destroyed, because that may end the process. [main]
nlohmann::json measure_pairs(control_client& control, const plan& p, std::optional<connection>& open);

} // namespace regatta::comm

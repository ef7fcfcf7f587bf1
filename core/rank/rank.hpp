// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/client.hpp"

#include <functional>

#include <nlohmann/json_fwd.hpp>

namespace regatta {

// Hands the coordinator what `work` returns, or why it threw; returns the exit code of the process. [main]
int report_to_coordinator(control_client& control, const std::function<nlohmann::json()>& work);

// The life of one rank, from its job to its result; returns the exit code of the process. What goes wrong is reported
// to the coordinator. [main]
int run_rank(control_client& control, std::uint32_t rank);

} // namespace regatta

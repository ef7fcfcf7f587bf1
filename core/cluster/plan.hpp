// SPDX-License-Identifier: Apache-2.0
//
// A strategy's plan for a cluster.
#pragma once

#include "cluster/layout.hpp"
#include "experiment/experiment.hpp"
#include "registry/plugin_host.hpp"

#include <string>

#include <regatta/abi.h>

namespace regatta {

// Returns the strategy's plan for this layout and optimizer (momentum, clipping), with defaults filled in: at least one
// lane, a period of at least 1. `id` names the strategy in errors. Throws failure: (plugin) if the plan contradicts
// itself, or by the status of the strategy's plan(): RG_E_CONFIG usage, RG_E_UNSUPPORTED skipped, RG_E_PLUGIN plugin,
// others run.
rg_plan plan_of(const rg_strategy& strategy, const rg_value* values, const cluster_layout& layout,
                const optimizer_config& config, plugin_host& host, const std::string& id);

// Prepares `config` for a strategy that computes the momentum itself (RG_PLAN_MOMENTUM): the engine keeps plain SGD,
// and the momentum coefficient is returned. Returns 0 and changes nothing for other strategies, and for plain SGD.
// Throws failure (usage) for an optimizer that cannot be divided like this.
double hand_over_momentum(const rg_plan& plan, const std::string& strategy_id, optimizer_config& config);

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// A strategy's plan for a cluster, and which ranks it lets exchange messages.
#pragma once

#include "cluster/layout.hpp"
#include "experiment/experiment.hpp"
#include "registry/plugin_host.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include <regatta/abi.h>

namespace regatta {

// In talks() and peers_of(), `all` is the cluster as no rank in particular sees it, cluster_layout::view(UINT32_MAX),
// in peers_of() with RG_HOST_TABLES if the model has sparse tables, and `values` are the strategy's parameters. A
// strategy without talks() lets all ranks exchange messages. Returns whether the strategy, by its talks(), lets any two
// ranks exchange messages.
bool talks(const rg_strategy& strategy, const rg_value* values, const rg_cluster& all);

// Returns the peers of `rank`, ascending, without itself: the ranks with which the strategy, by its talks(), lets it
// exchange messages; if `all_workers` is true and `rank` is a worker, also all other workers.
std::vector<std::uint32_t> peers_of(const rg_strategy& strategy, const rg_value* values, const rg_cluster& all,
                                    std::uint32_t rank, bool all_workers);

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

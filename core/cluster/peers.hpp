// SPDX-License-Identifier: Apache-2.0
//
// Which ranks of a run exchange messages.
#pragma once

#include <cstdint>
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

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#include "cluster/plan.hpp"

#include "base/failure.hpp"
#include "cluster/peers.hpp"
#include "registry/validate.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <regatta/plugin.hpp>

namespace regatta {

rg_plan plan_of(const rg_strategy& strategy, const rg_value* values, const cluster_layout& layout,
                const optimizer_config& config, plugin_host& host, const std::string& id) {
  rg_cluster cluster = layout.view(std::numeric_limits<std::uint32_t>::max());
  cluster.flags = config.clip_norm > 0 ? RG_HOST_DEFERRED : 0;
  cluster.momentum = config.plugin == "momentum" ? config.momentum : 0;
  auto plan = rg::make_versioned<rg_plan>();
  check(strategy.plan(host.c(), values, &cluster, &plan), host, "strategy " + id);
  validate(plan, talks(strategy, values, cluster), "strategy " + id);
  plan.lanes = std::max(plan.lanes, 1u);
  plan.period = std::max<std::uint64_t>(plan.period, 1);
  return plan;
}

double hand_over_momentum(const rg_plan& plan, const std::string& strategy_id, optimizer_config& config) {
  if (!(plan.flags & RG_PLAN_MOMENTUM)) return 0;
  if (config.plugin == "sgd") return 0;
  if (config.plugin != "momentum" || config.nesterov)
    throw failure(
        exit_code::usage,
        fmt::format("optimizer.plugin: strategy {} does the momentum itself and cannot do {}: set optimizer.plugin to "
                    "\"momentum\" or \"sgd\"{}",
                    strategy_id, config.nesterov ? "Nesterov's" : config.plugin,
                    config.nesterov ? " and optimizer.nesterov to false" : ""));
  config.plugin = "sgd";
  return std::exchange(config.momentum, 0);
}

} // namespace regatta

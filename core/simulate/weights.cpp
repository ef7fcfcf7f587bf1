// SPDX-License-Identifier: Apache-2.0
#include "simulate/weights.hpp"

#include "registry/run_in_child.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <nlohmann/json.hpp>

namespace regatta {

using nlohmann::json;

const described_weights& described_models::of(const case_config& c) {
  const std::string key = json{c.model.id, c.model.parameters, c.train.precision, c.train.device}.dump();
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  described_weights all{tensors_of(answers_.plugins(), c), {}};
  if (!answers_.of(c).model.table.empty()) all.tables = tables_of(answers_.plugins(), c);
  return known_.emplace(key, std::move(all)).first->second;
}

double simulated_step_seconds(const registry& plugins, const run_to_simulate& r) {
  constexpr std::uint64_t fewest = 4; // steps whose mean is taken
  child_options options;
  options.limit = std::chrono::minutes(10);
  const json seconds = run_in_child(
      [&](const stage_function& stage) -> json {
        const registry loading = plugins.loading();
        stage("strategy " + r.config->strategy.id, "was simulated");
        simulation_setup setup = setup_of(r);
        const std::uint64_t period = std::max<std::uint64_t>(r.run->job.period, 1);
        const std::uint64_t first = period, counted = (fewest + period - 1) / period * period;
        setup.steps = first + counted;
        double longest = 0;
        for (const std::vector<simulated_step>& steps : simulate(loading, setup).steps)
          longest = std::max(longest, static_cast<double>(steps.back().end - steps.at(first).begin));
        return longest * 1e-9 / static_cast<double>(counted);
      },
      options);
  return seconds.get<double>();
}

} // namespace regatta

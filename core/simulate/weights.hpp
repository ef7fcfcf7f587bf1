// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "campaign/plugin_facts.hpp"
#include "simulate/simulated_run.hpp"

#include <map>
#include <string>
#include <vector>

namespace regatta {

// The weights of a model.
struct described_weights {
  std::vector<simulated_tensor> dense;
  simulated_tables tables;
};

// Describes the weights of the models of cases, each model once. [main]
class described_models {
public:
  // The cache must outlive this object.
  explicit described_models(plugin_facts_cache& answers) : answers_(answers) {}
  // Returns the weights of a case's model, valid as long as this object. Throws failure as plugin_facts_cache::of()
  // does.
  const described_weights& of(const case_config& c);

private:
  plugin_facts_cache& answers_;
  std::map<std::string, described_weights> known_;
};

// [main] Returns the seconds of a step of the run that `r` describes: simulates a few steps in a child process, whole
// periods of the strategy, and takes the slowest worker's mean. Throws failure as setup_of() and simulate() do;
// (plugin) in place of their other exceptions, and if the child crashes or takes longer than 10 minutes.
double simulated_step_seconds(const registry& plugins, const run_to_simulate& r);

} // namespace regatta

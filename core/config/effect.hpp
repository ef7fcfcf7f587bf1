// SPDX-License-Identifier: Apache-2.0
//
// Keys that have an effect only together with others: momentum has none under sgd.
#pragma once

#include "experiment/experiment.hpp"

#include <string>
#include <string_view>

namespace regatta {

// [any] Returns false for a key of the schema that is ignored in this case because of another key's value; else true,
// also for unknown keys and for parameters of plugins. Does not know whether the strategy has servers;
// cli/experiment_checks.hpp checks the keys about servers.
bool has_effect(std::string_view key, const case_config& c);

// [any] Returns the key whose value in this case makes `key` ignored: "optimizer.plugin" for "optimizer.momentum" under
// sgd. Empty if `key` has an effect.
std::string ignored_because_of(std::string_view key, const case_config& c);

} // namespace regatta

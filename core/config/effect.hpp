// SPDX-License-Identifier: Apache-2.0
//
// Keys that have an effect only together with others: momentum has none under sgd.
#pragma once

#include "config/experiment.hpp"

#include <string>
#include <string_view>

namespace regatta {

// Returns true if the value of a key of the schema makes a difference to this case. Does not know whether the strategy
// has servers; campaign/preflight.hpp checks those keys. [any]
bool has_effect(std::string_view key, const case_config& c);

// Returns the key that decides whether `key` has an effect; empty if it always has.
std::string decided_by(std::string_view key);

} // namespace regatta

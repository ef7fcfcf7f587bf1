// SPDX-License-Identifier: Apache-2.0
//
// Keys that only count together with others: momentum under sgd changes nothing.
#pragma once

#include "config/experiment.hpp"

#include <string>
#include <string_view>

namespace regatta {

// Whether the value of a key of the schema makes a difference to this case. Strategies' servers are not known here:
// campaign/preflight.hpp. [any]
bool has_effect(std::string_view key, const case_config& c);

// The key that decides whether `key` has an effect; empty where it always has.
std::string decided_by(std::string_view key);

} // namespace regatta

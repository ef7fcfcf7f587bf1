// SPDX-License-Identifier: Apache-2.0
//
// Whether a campaign went as docs/experiments.md promises.
#pragma once

#include <string>
#include <vector>

#include "run.hpp"

namespace regatta::chaos {

// Twice the five seconds within which a lost rank ends its case: the machine may be loaded.
inline constexpr double in_time = 10;
// Of a hung plugin: from the program's start to its end, with timeout = "2s" once.
inline constexpr double hang_in_time = 60;

// Returns the promises that the disturbed program broke; empty: none.
std::vector<std::string> judge_disturbed(const campaign& c, const campaign_run& run, const observation& o);
// Returns the promises that --resume broke; empty: none.
std::vector<std::string> judge_resumed(const campaign& c, const campaign_run& run, const observation& o);

} // namespace regatta::chaos

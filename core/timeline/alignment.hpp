// SPDX-License-Identifier: Apache-2.0
//
// Prepares the traces of all ranks for one file.
#pragma once

#include "clocks/clock_course.hpp"
#include "timeline/rank_trace.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace regatta {

// Puts all times on one clock, if the ranks have several. `courses` has each of them, by rank_trace::clock, against
// their common reference. Throws failure (run) if a clock has no course: arrows between ranks would then be wrong.
void align_clocks(std::vector<rank_trace>& ranks, const std::map<std::string, clock_course>& courses);

// Removes the events outside of the traced steps of all workers: servers record longer, because they do not know them.
// Sets `dropped` to 0 for a rank without steps, such as a server, that recorded until after the last one: its memory
// was full only then. Does nothing without spans "step".
void keep_traced_steps(std::vector<rank_trace>& ranks);

} // namespace regatta

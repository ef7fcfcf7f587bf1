// SPDX-License-Identifier: Apache-2.0
//
// Prepares the traces of all ranks for one file.
#pragma once

#include "timeline/rank_trace.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace regatta {

// Puts all times on the clock of the first rank. `offsets` has, by rank_trace::clock, the nanoseconds to add to a time
// of each other clock. The ranks of one machine share its clock and need none. Throws failure (run) if the offset of a
// clock is unknown: arrows between ranks would then be wrong.
void align_clocks(std::vector<rank_trace>& ranks, const std::map<std::string, std::int64_t>& offsets);

// Removes the events outside of the traced steps of all workers: servers record longer, because they do not know them.
// Also takes the drops of a rank back whose memory was full only after these steps. Does nothing without spans "step".
void keep_traced_steps(std::vector<rank_trace>& ranks);

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// The file of a trace: TrackEvent packets of Perfetto (ui.perfetto.dev), compressed by gzip. One process a rank; one
// track for each thread, and one for each lane, peer and direction of messages. Spans of a track that overlap without
// nesting, such as messages that are under way at once, are put on further rows of the track.
#pragma once

#include "timeline/rank_trace.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace regatta {

// Returns the file. All times must be of one clock (align_clocks()). An arrow leads from each send to its receive: the
// event of the other rank with the same lane and sequence number. Adds counters: bytes of the sends of each rank to
// others that have not completed, and the cores that it keeps busy, from the counter "CPU time".
std::string perfetto_file(const std::vector<rank_trace>& ranks);

// Returns the ranks of a file that perfetto_file() wrote, without counters, and with display names for messages.
// Throws failure (usage) if it is none.
std::vector<rank_trace> read_perfetto_file(std::string_view file);
// As read_perfetto_file(), of what the file compresses.
std::vector<rank_trace> read_perfetto_packets(std::string_view packets);

} // namespace regatta

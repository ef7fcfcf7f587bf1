// SPDX-License-Identifier: Apache-2.0
//
// The measurements of all links between ranks, and which of them are far off the others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "comm/schedule.hpp"

namespace regatta::comm {

// Messages from one rank to another one, in one pass. Measured several times, it has the least latency and the highest
// bandwidth of all times, because other load only slows them down, and the sum of the segments.
struct rank_link {
  std::uint32_t from = 0, to = 0;
  double latency = 0;       // s, of a small message: half of the median round trip; 0: unknown
  double bandwidth = 0;     // bytes/s of a large message, without the latency of its answer: the median; 0: unknown
  double segments = 0;      // TCP segments that the sender's host sent meanwhile; 0: unknown
  double retransmitted = 0; // of those: sent again
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(rank_link, from, to, latency, bandwidth, segments, retransmitted)

// Figures of a link that can be marked.
enum class link_figure { latency, bandwidth, loss };
// Returns "latency", "bandwidth" or "loss".
const char* name_of(link_figure f);
// Returns the figure of a link: s, bytes/s, or the share of segments that were sent again. NaN: not measured.
double figure_of(const rank_link& l, link_figure f);

// A link that is far off those of its kind: within a host, or between hosts.
struct link_mark {
  link_figure figure = link_figure::latency;
  std::uint32_t from = 0, to = 0;
  bool within = false;
  double value = 0, usual = 0; // of this link, and of its kind
};

// Returns the links that are far off: by figure, those within hosts before those between hosts, then in the order of
// `links`. `host_of` has the host of each rank. The usual value of a kind is the median, over its ranks, of the best
// link from each, so that one bad host among three does not change it. A link is far off if it is worse than that by
// more than 15 % of it (bandwidth), by more than 100 % of it plus 50 us (latency), or by more than 0.01 (loss), and
// also by more than five robust_spread() (comm/outliers.hpp) of all links of the kind; of the best ones with fewer than
// five ranks; with fewer than three the spread does not count. A kind of one link has none that is far off.
std::vector<link_mark> marks_of(const std::vector<rank_link>& links, const std::vector<std::uint32_t>& host_of);

// Returns the pairs of marked links in rounds of one pair, each pair once, at most `most` rounds, those whose value and
// usual value have the largest ratio first.
std::vector<round_of_pairs> pairs_of(std::vector<link_mark> marks, std::size_t most);

// Combines a measurement with that of the same link in `all`, as rank_link says, or appends it.
void merge(std::vector<rank_link>& all, const rank_link& l);
// Adds measurements of links: as above, in the order of `more`.
void merge(std::vector<rank_link>& all, const std::vector<rank_link>& more);

} // namespace regatta::comm

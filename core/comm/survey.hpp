// SPDX-License-Identifier: Apache-2.0
//
// Which pairs are measured, in which order and how many at once, and which are measured again. All ranks decide alike,
// because all know the measurements of all.
//
// A link may only be called slow for a measurement during which no other pair sends: pairs at once may share a trunk, a
// switch or, in test hosts, the CPUs. So many ranks are surveyed in three stages:
//   1. some rounds of the tournament, one pair after the other: a few links of every rank, which show slow hosts;
//   2. all pairs, or as many as fit into 90 s, as many at once as reach 70 % of the rates that they have alone: which
//      of them deserve a closer look; so a link that has 60 % of the usual rate is found there;
//   3. those with fewer pairs at once, what is left of them alone, and every link that is far off by then several
//      times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "comm/links.hpp"
#include "comm/plan.hpp"
#include "comm/schedule.hpp"

namespace regatta::comm {

// The links of all ranks that some rounds have measured, and how long they took on rank 0: the same on all ranks.
struct measured_rounds {
  std::vector<rank_link> links;
  double seconds = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(measured_rounds, links, seconds)

// The least number of messages that are timed after one of warm-up: quick 1, normal 3. A pair has three series: small
// messages, and large ones in each direction. Each series goes on until it has taken about plan::pairs.seconds.
enum class effort { quick, normal };
// Measures rounds, one after the other, and returns the links of all ranks; collective. `name` is for messages.
using measure_rounds =
    std::function<measured_rounds(const std::vector<round_of_pairs>& rounds, const char* name, effort e)>;

// All links of a survey.
struct survey {
  std::vector<rank_link> alone, at_once; // links measured several times are merged
  std::size_t pairs = 0;                 // that could be measured
  std::size_t pairs_at_once = 0;         // in a round of `at_once`, at most
  double rate_at_once = 0;               // share of their rates alone that they reach then: the median; 0: not known
  // bytes/s of all pairs of across_halves() or of_neighbours() at once, a pair's directions in turn; 0: not measured
  double halves = 0, neighbours = 0;
  double seconds_alone = 0, seconds_at_once = 0, seconds_again = 0; // that the stages took on rank 0
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(survey, alone, at_once, pairs, pairs_at_once, rate_at_once, halves, neighbours,
                                   seconds_alone, seconds_at_once, seconds_again)

// Surveys the links between ranks; collective if `measure` is. `is_open` says which pairs can be measured. With
// plan::pairs.alone, all pairs are measured alone; with plan::pairs.at_once, all pairs also in the rounds of
// tournament(), of ranks / 2 pairs at once. With plan::pairs.many, the three stages above are gone through instead. In
// the end, pairs with links that are far off are measured alone again, until no link is far off, at most
// plan::pairs.repeats - 1 times. With plan::pairs.many, or with plan::pairs.at_once and plan::pairs.hosts, it also
// measures `halves` and `neighbours`.
survey survey_links(const plan& p, const std::function<bool(const rank_pair&)>& is_open, const measure_rounds& measure);

// A rank, as the sender or the receiver of links, most of which are far off.
struct bad_end {
  std::uint32_t rank = 0;
  bool sends = true;
  std::size_t bad = 0, measured = 0; // its links in this direction, without those with ranks that were found before
};

// Returns the ranks that explain bad links: those of which more than half of their measured links in one direction, and
// at least two, are bad; the one with most bad links first. Links whose other end was found before do not count: a
// healthy rank that was measured with two slow ones is not found. Both lists have each link once, as (from, to).
std::vector<bad_end> bad_ends(const std::vector<rank_pair>& bad, const std::vector<rank_pair>& measured,
                              std::uint32_t ranks);
// Returns those that explain the links that marks_of() marks for this figure. `host_of` has the host of each rank.
std::vector<bad_end> bad_ends(const std::vector<rank_link>& links, link_figure figure,
                              const std::vector<std::uint32_t>& host_of);

} // namespace regatta::comm

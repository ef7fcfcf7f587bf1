// SPDX-License-Identifier: Apache-2.0
//
// In which order pairs of ranks are measured.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace regatta::comm {

using rank_pair = std::pair<std::uint32_t, std::uint32_t>; // the smaller rank first
using round_of_pairs = std::vector<rank_pair>;             // disjoint pairs, which are measured at once

// Returns all pairs of `ranks` ranks as a round-robin tournament: every pair once, in ranks - 1 rounds of ranks / 2
// pairs, or for an odd number in `ranks` rounds in which one rank is left out.
std::vector<round_of_pairs> tournament(std::uint32_t ranks);
// Returns the pairs of these rounds in the same order, each as a round of its own: no pair disturbs another one.
std::vector<round_of_pairs> one_by_one(const std::vector<round_of_pairs>& rounds);

} // namespace regatta::comm

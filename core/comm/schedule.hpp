// SPDX-License-Identifier: Apache-2.0
//
// In which order pairs of ranks are measured.
#pragma once

#include <cstddef>
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
// Returns the pairs of these rounds in the same order, in rounds of at most `most` pairs, at least 1.
std::vector<round_of_pairs> divided(const std::vector<round_of_pairs>& rounds, std::size_t most);
// Returns these pairs in rounds of at most `most` pairs, at least 1, in which no rank is twice.
std::vector<round_of_pairs> packed(const round_of_pairs& pairs, std::size_t most);
// Returns `many` rounds, at least 1, that are spread evenly over `rounds`; all of them if there are no more.
std::vector<round_of_pairs> sample(const std::vector<round_of_pairs>& rounds, std::size_t many);
// Returns one round: each rank of the first half with one of the second half, in the order of ranks.
round_of_pairs across_halves(std::uint32_t ranks);
// Returns one round: rank 0 with 1, 2 with 3, and so on.
round_of_pairs of_neighbours(std::uint32_t ranks);

} // namespace regatta::comm

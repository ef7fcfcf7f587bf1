// SPDX-License-Identifier: Apache-2.0
//
// In which order `regatta preflight` and `regatta comm --matrix` measure pairs of ranks. A round is that of a
// tournament: pairs that are measured at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace regatta::comm {

using rank_pair = std::pair<std::uint32_t, std::uint32_t>; // the smaller rank first
using round_of_pairs = std::vector<rank_pair>;             // without a common rank

// Returns all pairs of `ranks` ranks as a round-robin tournament: every pair once, in ranks - 1 rounds of ranks / 2
// pairs, or for an odd number in `ranks` rounds in which one rank is left out.
std::vector<round_of_pairs> tournament(std::uint32_t ranks);
// Returns the pairs of these rounds in the same order, each as a round of its own: no pair disturbs another one.
std::vector<round_of_pairs> one_by_one(const std::vector<round_of_pairs>& rounds);
// Returns the pairs of these rounds in the same order, each round cut into rounds of at most `most` pairs. Requires
// most > 0.
std::vector<round_of_pairs> divided(const std::vector<round_of_pairs>& rounds, std::size_t most);
// Returns `pairs`, of which several may have the same rank, in rounds of at most `most` disjoint pairs. Requires
// most > 0.
std::vector<round_of_pairs> packed(const std::vector<rank_pair>& pairs, std::size_t most);
// Returns `many` of the rounds, at even distances; all of them if there are no more. Requires many > 0.
std::vector<round_of_pairs> sample(const std::vector<round_of_pairs>& rounds, std::size_t many);
// Returns one round: rank k with k + ranks / 2. Of an odd number, the last rank is left out.
round_of_pairs across_halves(std::uint32_t ranks);
// Returns one round: rank 0 with 1, 2 with 3, and so on. Of an odd number, the last rank is left out.
round_of_pairs of_neighbours(std::uint32_t ranks);

} // namespace regatta::comm

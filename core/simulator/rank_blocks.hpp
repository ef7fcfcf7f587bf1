// SPDX-License-Identifier: Apache-2.0
//
// The ranks of a simulation in blocks. Ranks that share a link or cores are in one block, as those of a host are; with
// RG_SYMMETRY_HOSTS those of a host always are. A rank that shares nothing is a block of its own. Blocks share nothing
// with each other, so two of one kind may change places as a whole, if the strategy's symmetry allows it.
#pragma once

#include "cluster/layout.hpp"

#include <cstdint>
#include <vector>

namespace regatta {

struct simulation_setup;

// Returns the number of each rank's link in network.links.
const std::vector<std::uint32_t>& links_of(const simulation_setup& setup, const cluster_layout& layout);

class rank_blocks {
public:
  rank_blocks(const simulation_setup& setup, std::uint32_t symmetry, const cluster_layout& layout);

  // Returns the number of blocks, which count from 0, in the order of their first ranks.
  std::uint32_t size() const { return static_cast<std::uint32_t>(ranks_.size()); }
  const std::vector<std::uint32_t>& ranks(std::uint32_t block) const { return ranks_[block]; } // ascending
  std::uint32_t block_of(std::uint32_t rank) const { return block_of_[rank]; }
  // Returns the first block of the same kind. Blocks are of one kind if they have equally many ranks that in their
  // order have the same roles, computing times, links and cores, and share the same of them.
  std::uint32_t first_like(std::uint32_t block) const { return first_like_[block]; }
  // Returns the rank of `block` that has the place of `rank` in its own. Requires that the blocks are of one kind.
  std::uint32_t at_place_of(std::uint32_t rank, std::uint32_t block) const { return ranks_[block][place_[rank]]; }

  bool several_ranks() const { return size() < block_of_.size(); } // in any block
  // Returns whether all blocks are of one kind, and block b has the ranks b * k to b * k + k - 1, for a constant k.
  bool regular() const;

private:
  std::vector<std::uint32_t> block_of_, place_; // by rank
  std::vector<std::vector<std::uint32_t>> ranks_;
  std::vector<std::uint32_t> first_like_;
};

} // namespace regatta

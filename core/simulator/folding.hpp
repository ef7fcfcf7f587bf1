// SPDX-License-Identifier: Apache-2.0
//
// Folding: ranks that are equal under a renaming of all ranks have one history, so one member of each class is
// simulated. The members are blocks of ranks (rank_blocks.hpp): single ranks, or hosts with several that share a link
// or cores, of which all are simulated. What the ranks of a member send tells what the others send at the same time: if
// block b stands where member a does after a renaming, then a message from a rank of a to x is a message from the rank
// at the same place in b to the rank that the renaming turns into x.
//   classes          the renaming exchanges blocks a and b
//   rotation, hosts  the renaming subtracts b from the number of every block; a is block 0
//   xor              the renaming is the xor of the number of every block with b; a is block 0
#pragma once

#include "rank_blocks.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <regatta/abi.h>

namespace regatta {

class folded_ranks {
public:
  // Returns why the ranks of this run cannot be folded; empty: they can.
  static std::string obstacle(const simulation_setup& setup, const rg_plan& plan, const cluster_layout& layout);
  // Requires that there is no obstacle.
  folded_ranks(const simulation_setup& setup, const rg_plan& plan, const cluster_layout& layout);

  // Returns the ranks that are simulated, ascending.
  const std::vector<std::uint32_t>& simulated() const { return simulated_; }
  bool is_simulated(std::uint32_t rank) const { return simulates(blocks_.block_of(rank)); }
  // Returns the simulated rank that a rank is like.
  std::uint32_t stands_for(std::uint32_t rank) const { return is_simulated(rank) ? rank : first_like(rank); }

  // Appends, for a message between these ranks, of which the first is simulated, the messages from ranks that are not
  // simulated to ranks that are: from, to.
  using pairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  void append_copies(std::uint32_t from, std::uint32_t to, pairs& out) const;

  // folding::checked: takes down a message of a simulated rank.
  void sent(std::uint64_t now, std::uint32_t from, std::uint32_t to, std::uint32_t lane, std::uint64_t bytes);
  // Throws failure (plugin) if the two members of a class that are simulated have sent different messages, or at
  // different times; the times count only if no length was rounded, nor differed between the two.
  void require_equal_members();
  // Returns the ranks of the classes of which two members are simulated, in pairs.
  pairs members() const;

  // Returns the bytes of a copied message: those of its receive if the two differ by up to 128 (16 elements of 8 bytes)
  // and the message is not empty; rounded() returns whether any differed.
  std::uint64_t length(std::uint64_t message, std::uint64_t receive);
  bool rounded() const { return rounded_; }

private:
  struct sending { // messages of a rank at one time, in any order; peers as the first member knows them
    std::uint64_t time = 0, count = 0, digest = 0;
    std::uint64_t bytes = 0; // of the first message
    std::uint32_t to = 0, lane = 0;
  };
  struct traffic {
    std::uint64_t messages = 0, bytes = 0;
    std::uint64_t lengths = 0; // a digest of the lengths, in their order
  };
  struct history {
    std::uint32_t rank = 0;
    std::vector<sending> times;
    std::map<std::pair<std::uint32_t, std::uint32_t>, traffic> sums; // by peer and lane
  };
  struct pair_of_members {
    history first, second;
  };
  bool rotates() const { return symmetry_ == RG_SYMMETRY_ROTATION || symmetry_ == RG_SYMMETRY_HOSTS; }
  bool simulates(std::uint32_t block) const {
    const std::uint32_t first = blocks_.first_like(block);
    return first == block || second_[first] == block;
  }
  std::uint32_t first_like(std::uint32_t rank) const {
    return blocks_.at_place_of(rank, blocks_.first_like(blocks_.block_of(rank)));
  }
  std::uint32_t renamed(std::uint32_t rank, std::uint32_t first, std::uint32_t second, bool back = false) const;
  void require_equal_sums(const pair_of_members& p);
  void require_equal_times(const pair_of_members& p) const;
  [[noreturn]] void refuse(const pair_of_members& p, const std::string& first, const std::string& second) const;

  std::string strategy_;
  std::uint32_t symmetry_;
  rank_blocks blocks_;
  std::vector<std::uint32_t> second_;              // by first block: the second one, if it is simulated, else itself
  std::vector<std::vector<std::uint32_t>> others_; // by first block: the members that are not simulated
  std::vector<std::uint32_t> simulated_;
  std::map<std::uint32_t, pair_of_members> checks_; // by rank of a first member
  bool rounded_ = false;
};

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// Folding: ranks that are equal under a renaming of all ranks have one history, so one member of each class is
// simulated. What it sends tells what the others send at the same time: if rank r stands where member p does after a
// renaming, then a message from p to x is a message from r to the rank that the renaming turns into x.
//   classes    the renaming exchanges p and r
//   rotation   the renaming subtracts r from every number; p is rank 0
//   xor        the renaming is the xor of every number with r; p is rank 0
#pragma once

#include "cluster/layout.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <regatta/abi.h>

namespace regatta {

struct simulation_setup;

// Returns the number of each rank's link in network.links.
const std::vector<std::uint32_t>& links_of(const simulation_setup& setup, const cluster_layout& layout);

class folded_ranks {
public:
  // Returns why the ranks of this run cannot be folded; empty: they can.
  static std::string obstacle(const simulation_setup& setup, const rg_plan& plan, const cluster_layout& layout);
  // Requires that there is no obstacle.
  folded_ranks(const simulation_setup& setup, const rg_plan& plan, const cluster_layout& layout);

  // Returns the ranks that are simulated, ascending.
  const std::vector<std::uint32_t>& simulated() const { return simulated_; }
  bool is_simulated(std::uint32_t rank) const { return first_of_[rank] == rank || second_of_[first_of_[rank]] == rank; }
  // Returns the simulated rank that a rank is like.
  std::uint32_t stands_for(std::uint32_t rank) const { return is_simulated(rank) ? rank : first_of_[rank]; }

  // Appends, for a message between these ranks, of which the first is simulated, the messages from ranks that are not
  // simulated to ranks that are: from, to.
  using pairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  void append_copies(std::uint32_t from, std::uint32_t to, pairs& out) const;

  // folding::checked: takes down a message of a simulated rank.
  void sent(std::uint64_t now, std::uint32_t from, std::uint32_t to, std::uint32_t lane, std::uint64_t bytes);
  // Throws failure (plugin) if the two members of a class that are simulated have sent different messages, or at
  // different times; the times count only if no length was rounded.
  void require_equal_members() const;
  // Returns the members of the classes of which two are simulated.
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
  struct history {
    std::uint32_t rank = 0;
    std::vector<sending> times;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::pair<std::uint64_t, std::uint64_t>>
        sums; // messages and bytes, by peer and lane
  };
  struct pair_of_members {
    history first, second;
  };
  std::uint32_t renamed(std::uint32_t rank, std::uint32_t first, std::uint32_t second, bool back = false) const;
  void require_equal_sums(const pair_of_members& p) const;
  void require_equal_times(const pair_of_members& p) const;
  [[noreturn]] void refuse(const pair_of_members& p, const std::string& first, const std::string& second) const;

  std::string strategy_;
  std::uint32_t symmetry_, workers_;
  std::vector<std::uint32_t> first_of_;            // by rank: the first member of its class
  std::vector<std::uint32_t> second_of_;           // by first member: the second one, if it is simulated, else itself
  std::vector<std::vector<std::uint32_t>> others_; // by first member: the members that are not simulated
  std::vector<std::uint32_t> simulated_;
  std::map<std::uint32_t, pair_of_members> checks_; // by first member
  bool rounded_ = false;
};

} // namespace regatta

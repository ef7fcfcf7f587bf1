// SPDX-License-Identifier: Apache-2.0
//
// The native collectives of a virtual network: who has joined which, and what they compute. They reduce fp32 only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <regatta/ext/collectives.h>

namespace regatta {

class native_collectives {
public:
  using joined = std::vector<std::pair<std::uint32_t, rg_collective>>; // by rank

  // Returns the number of the group of these ranks; the same for equal ranks.
  std::uint32_t group(const std::vector<std::uint32_t>& members);
  // Adds a rank to its next collective in the group. Returns the number of the collective if it was the last member,
  // else UINT32_MAX. Throws std::logic_error if another member called one of another kind.
  std::uint32_t join(std::uint32_t rank, const rg_collective& c);
  // Returns the time that a collective takes once all have joined, that of a ring: both halves of it for an all-reduce,
  // one half for the others.
  std::uint64_t ns(std::uint32_t number, double bytes_per_ns, std::uint64_t latency_ns) const;
  // Calls `to` with each member and the bytes that it sends, as many as it receives: those of a ring whose chunks are
  // 1/n of the bytes each, without padding.
  void count(std::uint32_t number, const std::function<void(std::uint32_t rank, std::uint64_t bytes)>& to) const;
  // Writes every member's result, and forgets the collective. Returns its members.
  joined finish(std::uint32_t number);
  // Appends what each rank waits for that has joined a collective which not all have joined.
  void append_waits(std::multimap<std::uint32_t, std::string>& to) const;

private:
  // Returns the messages that a member of a collective sends in a ring, and the bytes of the whole buffer in the wire
  // type: n chunks, of which each message carries one.
  std::pair<std::uint64_t, std::uint64_t> ring_of(std::uint32_t number) const;
  struct pending {
    std::uint32_t group;
    joined members;
  };
  std::vector<std::vector<std::uint32_t>> groups_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> begun_; // by group and rank
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> open_;  // by group and order
  std::map<std::uint32_t, pending> pending_;                               // by number
  std::uint32_t next_ = 0;
};

} // namespace regatta

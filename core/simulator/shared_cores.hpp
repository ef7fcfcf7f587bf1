// SPDX-License-Identifier: Apache-2.0
//
// Cores on which ranks compute, and on which their processors work on messages and on operations of strategies. The
// threads that do so wake up and take a core from computing, which goes on later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace regatta {

// Cores that one or more ranks share.
struct core_group {
  double cores = 1, threads = 1; // threads: those on which a worker computes; 0: it does not compute on these cores
  bool operator==(const core_group&) const = default;
};

struct cores_options {
  std::vector<core_group> groups;      // empty: computing loses nothing
  std::vector<std::uint32_t> group_of; // by rank
  double loss = 1;                     // ns that one core's computing loses for each ns of work on messages
};

// Times are virtual, in ns. While no core of a group is idle, work of w ns on messages takes w * loss / cores from each
// rank that computes meanwhile, and work of w ns on an operation w / cores. Computing and work have equal shares of a
// core, as the scheduler of Linux gives them: work takes twice as long until the computing of its rank ends, and
// computing loses no more than it has left.
class shared_cores {
public:
  enum work_kind : std::uint8_t { send, receive, operation };

  // Borrows `options`, whose groups are not empty.
  explicit shared_cores(const cores_options& options);
  // Returns whether a group has several ranks.
  bool any_shared() const;
  // A rank computes from `now` on, for `ns` if nothing else needs its cores.
  void compute(std::uint32_t rank, std::uint64_t now, std::uint64_t ns);
  // Returns when the last computing of a rank ends, as far as is known now: never earlier than it was before.
  std::uint64_t end(std::uint32_t rank) const { return ranks_[rank].end; }
  // Returns the ns that computing of a rank has lost so far.
  std::uint64_t lost(std::uint32_t rank) const { return ranks_[rank].lost; }
  // A rank works for `ns` on a message or an operation, on one core, from `earliest` on, which may be in the past. Returns
  // when it ends. If the group has more ranks than cores and does not compute on them, work waits until a core is free.
  // Work of one kind of one rank takes turns.
  std::uint64_t work(std::uint32_t rank, work_kind kind, std::uint64_t now, std::uint64_t earliest, std::uint64_t ns);

private:
  struct member {
    std::uint64_t begin = 0, end = 0; // of computing without a pause
    std::uint64_t lost = 0;
    struct {
      std::uint64_t until = 0;
      double part = 1; // of the core, up to then
    } works[3];        // by work_kind
  };
  std::uint64_t begin(std::uint32_t rank, std::uint64_t earliest, std::uint64_t ns); // returns when a core is free
  double share(std::uint32_t group, std::uint64_t now, work_kind kind) const;
  void lose(member& r, std::uint64_t from, double past, double coming, double share);

  const cores_options& options_;
  std::vector<member> ranks_;
  std::vector<std::vector<std::uint32_t>> members_;     // by group
  std::vector<std::vector<std::uint64_t>> cores_until_; // by group and core: when its work ends
};

} // namespace regatta

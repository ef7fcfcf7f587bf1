// SPDX-License-Identifier: Apache-2.0
//
// Records the operations of all ranks of a simulation, and writes them in GOAL, the schedule language of LogGOPSim
// (Hoefler et al., 2010): for each rank its computing, sends and receives, and which of them wait for which.
//
// Strategies do not say what an operation waits for, so it is taken from time: an operation that begins at an instant
// waits for everything on its rank that ended at that instant, and for everything that ended before and that no earlier
// operation waits for. These are all dependencies that decide the times of the recorded run, and a few that do not.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
#include <queue>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace regatta {

class goal_recorder {
public:
  // The simulation calls these in the order of virtual time `now`, in ns. A rank may appear for the first time in any
  // call.

  // The model of a rank computes for `ns`, after everything that it computed before.
  void compute(std::uint32_t rank, std::uint64_t now, std::uint64_t ns);
  // An operation of the strategy begins that takes `ns` and ends at `end`: later than now + ns if it waits for the
  // operation before it.
  void work(std::uint32_t rank, std::uint64_t now, std::uint64_t ns, std::uint64_t end);
  // A send or a receive begins. `cookie` identifies it among those of its rank until ended().
  void send(std::uint32_t rank, std::uint64_t now, std::uint64_t cookie, std::uint32_t to, std::uint32_t lane,
            std::uint64_t bytes);
  void receive(std::uint32_t rank, std::uint64_t now, std::uint64_t cookie, std::uint32_t from, std::uint32_t lane,
               std::uint64_t bytes);
  // A send or receive has ended; `bytes` have arrived, of a receive. Other cookies are ignored.
  void ended(std::uint32_t rank, std::uint64_t now, std::uint64_t cookie, std::uint64_t bytes);
  // A native collective begins, which GOAL cannot express.
  void collective() { collectives_ = true; }

  // Returns whether a collective was reported: what write() writes then lacks it.
  bool incomplete() const { return collectives_; }
  // Writes the schedule of ranks 0 to `ranks` - 1. `heading` becomes comments before it, a line each. The tag of a
  // message is its number among those of the same sender, receiver and lane, times the lanes, plus the lane. Messages
  // that did not arrive (their sends become a calc of 0), and receives that did not end, are left out.
  void write(std::ostream& out, std::uint32_t ranks, const std::string& heading) const;

private:
  enum class kind : std::uint8_t { calc, send, receive };
  struct node {
    kind what;
    bool ended = false; // of a receive
    std::uint32_t peer = 0, lane = 0, number = 0;
    std::uint64_t size = 0;             // ns or bytes
    std::uint32_t first = 0, waits = 0; // its part of rank_schedule::needs
  };
  using end_of_node = std::pair<std::uint64_t, std::uint32_t>; // time, node
  struct rank_schedule {
    std::vector<node> nodes;
    std::vector<std::uint32_t> needs;  // of all nodes
    std::vector<std::uint32_t> causes; // what a node that begins now waits for
    std::uint64_t newest = 0;          // when the last of the causes ended
    bool used = false;                 // a node waits for them
    std::priority_queue<end_of_node, std::vector<end_of_node>, std::greater<>> running; // calc
    std::unordered_map<std::uint64_t, std::uint32_t> open;                              // by cookie
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> sent, posted;      // by peer and lane
    static constexpr std::uint32_t none = UINT32_MAX;
    std::uint32_t computed = none, worked = none; // the last calc of either
  };

  rank_schedule& of(std::uint32_t rank);
  static void note_end(rank_schedule& r, std::uint64_t at, std::uint32_t node);
  static std::uint32_t begin(rank_schedule& r, std::uint64_t now, node n, std::uint32_t also = rank_schedule::none);
  bool arrived(std::uint32_t from, std::uint32_t to, const node& n) const;
  void write_rank(std::ostream& out, std::uint32_t rank, std::uint32_t lanes) const;

  std::vector<rank_schedule> ranks_;
  // By sender, receiver and lane: the number of its receives that ended.
  std::map<std::pair<std::uint32_t, std::pair<std::uint32_t, std::uint32_t>>, std::uint32_t> received_;
  bool collectives_ = false;
};

} // namespace regatta

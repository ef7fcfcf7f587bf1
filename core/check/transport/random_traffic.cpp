// SPDX-License-Identifier: Apache-2.0
//
// Random traffic: all ranks send to all others on all lanes, with sizes from 0 to 1 MiB, posted in random order.
#include "check/harness/rank_group.hpp"

#include <algorithm>
#include <random>

namespace regatta::conformance {
namespace {

struct message {
  std::uint64_t bytes, seed;
  bool adds;
};

// Returns the messages that `from` sends to `to` on a lane. Both compute the same list.
std::vector<message> messages_of(std::uint64_t seed, std::uint32_t from, std::uint32_t to, std::uint32_t lane,
                                 bool may_add) {
  std::mt19937_64 random(seed * 1000003 + from * 1009 + to * 31 + lane);
  std::vector<message> messages(20 + random() % 40);
  for (message& m : messages) {
    const std::uint64_t order = random() % 21; // spreads sizes evenly over orders of magnitude
    m = {random() % (std::uint64_t{1} << order), random() % 100000, may_add && random() % 3 == 0};
    if (m.adds) m.bytes = m.bytes / 4 * 4;
  }
  return messages;
}

// Fills memory with floats that are small integers, so that sums are exact.
void fill_numbers(std::byte* to, std::uint64_t bytes, std::uint64_t seed) {
  for (std::uint64_t i = 0; i < bytes / 4; ++i) reinterpret_cast<float*>(to)[i] = static_cast<float>((seed + i) % 1000);
}

struct stream {
  std::uint32_t peer, lane;
  bool receives;
  std::vector<message> messages;
  std::size_t begun = 0, finished = 0;
  struct operation {
    std::uint64_t cookie;
    memory buffer;
    std::uint64_t offset;
  };
  std::vector<operation> operations;
};

void check_arrival(endpoint& e, const stream& s, const message& m, const stream::operation& o) {
  require(e.finish(o.cookie) == m.bytes, "a receive completes with another length than its message's");
  if (!m.adds)
    return require(is_filled(o.buffer.data + o.offset, m.bytes, m.seed), "received bytes differ from the sent ones");
  const auto* floats = reinterpret_cast<const float*>(o.buffer.data + o.offset);
  for (std::uint64_t i = 0; i < m.bytes / 4; ++i)
    require(floats[i] == static_cast<float>((m.seed + i) % 1000 + (m.seed + s.peer + i) % 1000),
            "a receive that adds gives a wrong sum");
}

void exchange_messages(member& self, std::uint64_t seed) {
  const bool may_add = self->caps().flags & RG_CAP_ADD;
  std::mt19937_64 random(seed * 77 + self->rank());
  std::vector<stream> streams;
  for (std::uint32_t peer = 0; peer < self->ranks(); ++peer)
    for (std::uint32_t lane = 0; lane < self->lanes() && peer != self->rank(); ++lane) {
      streams.push_back({peer, lane, false, messages_of(seed, self->rank(), peer, lane, may_add)});
      streams.push_back({peer, lane, true, messages_of(seed, peer, self->rank(), lane, may_add)});
    }
  // Each stream keeps a few operations in flight, and checks them in the order in which it began them.
  constexpr std::size_t in_flight = 6;
  for (;;) {
    bool busy = false;
    std::shuffle(streams.begin(), streams.end(), random);
    for (stream& s : streams) {
      if (s.begun < s.messages.size() && s.begun - s.finished < in_flight && random() % 2) {
        const message& m = s.messages[s.begun];
        const std::uint64_t offset = m.adds ? 4 * (random() % 16) : random() % 64;
        const memory buffer = self->allocate(m.bytes + 64 + random() % 64);
        std::byte* const at = buffer.data + offset;
        if (m.adds)
          fill_numbers(at, m.bytes, m.seed + (s.receives ? s.peer : 0));
        else if (!s.receives)
          fill(at, m.bytes, m.seed);
        const std::uint64_t room =
            std::min<std::uint64_t>(buffer.bytes - offset, m.bytes + (m.adds ? 0 : random() % 32));
        const std::uint64_t cookie =
            s.receives ? self->recv(s.peer, s.lane, buffer, offset, room, m.adds ? RG_TRANSFER_ADD : 0)
                       : self->send(s.peer, s.lane, buffer, offset, m.bytes);
        s.operations.push_back({cookie, buffer, offset});
        ++s.begun;
      }
      while (s.finished < s.begun && self->completed(s.operations[s.finished].cookie)) {
        if (s.receives)
          check_arrival(*self, s, s.messages[s.finished], s.operations[s.finished]);
        else
          self->finish(s.operations[s.finished].cookie);
        ++s.finished;
      }
      busy |= s.finished < s.messages.size();
    }
    if (!busy) return;
    self->poll(random() % 4 ? 0 : second / 10000);
  }
}

void random_traffic(const subject& which) {
  for (std::uint64_t seed = 6 * which.seed; seed < 6 * which.seed + 6; ++seed)
    run_ranks(which,
              {.ranks = static_cast<std::uint32_t>(2 + seed % 3),
               .lanes = static_cast<std::uint32_t>(1 + seed % 2 * 2),
               .kind = seed % 2 ? ranks_as::threads : ranks_as::processes},
              [seed](member& self) { exchange_messages(self, seed); });
}

} // namespace

std::vector<test> random_traffic_tests() {
  return {
      {"traffic", "random messages between all ranks on all lanes arrive unchanged", random_traffic, false, true},
  };
}

} // namespace regatta::conformance

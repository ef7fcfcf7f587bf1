// SPDX-License-Identifier: Apache-2.0
//
// Messages arrive complete, in order, and in the right buffer.
#include "check/harness/rank_group.hpp"
#include "launch/memory.hpp"

#include <fmt/format.h>

namespace regatta::conformance {
namespace {

constexpr std::uint64_t guard = 32; // bytes behind a receive that must not change

void check_receive(member& self, std::uint64_t cookie, const memory& m, std::uint64_t offset, std::uint64_t bytes,
                   std::uint64_t seed) {
  const std::uint64_t got = self->finish(cookie);
  require(got == bytes, fmt::format("the receive of a message of {} bytes completes with {} bytes", bytes, got));
  require(is_filled(m.data + offset, bytes, seed),
          fmt::format("the received bytes of a message of {} bytes differ from the sent ones", bytes));
}

void sizes(const subject& which) {
  for (const ranks_as kind : {ranks_as::threads, ranks_as::processes})
    run_ranks(which, {.kind = kind}, [](member& self) {
      const std::uint64_t sizes[] = {0, 1, 3, 64, 4095, 4096, 4097, 65536, MiB + 1, 0, 64 * MiB};
      const memory m = self->allocate(64 * MiB + guard);
      std::uint64_t seed = 0;
      for (const std::uint64_t bytes : sizes) {
        ++seed;
        if (self->rank() == 0) {
          fill(m.data, bytes, seed);
          self->finish(self->send(1, 0, m, 0, bytes));
          check_receive(self, self->recv(1, 0, m, 0, bytes), m, 0, bytes, seed + 100);
        } else {
          fill(m.data + bytes, guard, 7);
          check_receive(self, self->recv(0, 0, m, 0, bytes), m, 0, bytes, seed);
          require(is_filled(m.data + bytes, guard, 7), "a receive writes behind the end of its message");
          fill(m.data, bytes, seed + 100);
          self->finish(self->send(0, 0, m, 0, bytes));
        }
      }
    });
}

void alignment(const subject& which) {
  run_ranks(which, {}, [](member& self) {
    const memory m = self->allocate(MiB);
    for (const std::uint64_t bytes : {std::uint64_t{5}, std::uint64_t{4097}, std::uint64_t{500001}})
      for (std::uint64_t shift = 1; shift < 16; shift += 3) {
        const std::uint64_t from = shift, to = 17 - shift;
        if (self->rank() == 0) {
          fill(m.data + from, bytes, shift);
          self->finish(self->send(1, 0, m, from, bytes));
        } else {
          check_receive(self, self->recv(0, 0, m, to, bytes), m, to, bytes, shift);
        }
      }
  });
}

// A transport moves bytes: it must not refuse a type that came after it, here the last one.
void types(const subject& which) {
  run_ranks(which, {}, [](member& self) {
    const memory m = self->allocate(64 * KiB);
    for (const std::uint32_t type :
         {RG_F32, RG_F16, RG_BF16, RG_F64, RG_I32, RG_I64, RG_U8, RG_I8, RG_F8_E4M3, RG_F8_E5M2, RG_U4, RG_U1}) {
      const rg_buffer b{m.region, type, 0, 1001};
      if (self->rank() == 0) {
        fill(m.data, rg::bytes_of(b), type);
        self->finish(self->send_elements(1, m, b));
      } else {
        check_receive(self, self->recv_elements(0, m, b), m, 0, rg::bytes_of(b), type);
      }
    }
    const rg_buffer later{m.region, 1000, 0, 1001};
    if (self->rank() == 0) {
      fill(m.data, later.count, 1);
      self->finish(self->send_elements(1, m, later));
    } else {
      check_receive(self, self->recv_elements(0, m, later), m, 0, later.count, 1);
    }
  });
}

void need_independent_lanes(const subject& which) {
  if (caps_of(which).p2p == RG_P2P_ORDERED) throw skipped("its lanes are not independent (RG_P2P_ORDERED)");
}

void fifo(const subject& which) {
  need_independent_lanes(which);
  run_ranks(which, {.ranks = 3, .lanes = 3}, [](member& self) {
    constexpr std::uint64_t messages = 60, longest = 40 * KiB;
    auto size_of = [](std::uint64_t k) { return (k * 7919) % longest; };
    const std::uint32_t lanes = self->lanes();
    auto seed_of = [&](std::uint32_t from, std::uint32_t to, std::uint32_t lane, std::uint64_t k) {
      return ((from * 8 + to) * 8 + lane) * 1000 + k;
    };
    const memory out = self->allocate(3 * lanes * messages * longest), in = self->allocate(out.bytes);
    auto offset_of = [&](std::uint32_t peer, std::uint32_t lane, std::uint64_t k) {
      return ((peer * lanes + lane) * messages + k) * longest;
    };
    std::vector<std::uint64_t> sends;
    struct receive {
      std::uint64_t cookie, offset, bytes, seed;
    };
    std::vector<receive> receives;
    // Sends alternate between lanes, receives go lane by lane: each lane must buffer messages that are not received
    // yet.
    for (std::uint64_t k = 0; k < messages; ++k)
      for (std::uint32_t peer = 0; peer < self->ranks(); ++peer)
        for (std::uint32_t lane = 0; lane < lanes && peer != self->rank(); ++lane) {
          const std::uint64_t at = offset_of(peer, lane, k);
          fill(out.data + at, size_of(k), seed_of(self->rank(), peer, lane, k));
          sends.push_back(self->send(peer, lane, out, at, size_of(k)));
        }
    for (std::uint32_t lane = lanes; lane-- > 0;)
      for (std::uint32_t peer = 0; peer < self->ranks(); ++peer)
        for (std::uint64_t k = 0; k < messages && peer != self->rank(); ++k) {
          const std::uint64_t at = offset_of(peer, lane, k);
          receives.push_back(
              {self->recv(peer, lane, in, at, size_of(k)), at, size_of(k), seed_of(peer, self->rank(), lane, k)});
        }
    for (const receive& r : receives) check_receive(self, r.cookie, in, r.offset, r.bytes, r.seed);
    self->finish(sends);
  });
}

void lanes(const subject& which) {
  need_independent_lanes(which);
  run_ranks(which, {.lanes = 2}, [](member& self) {
    const memory big = self->allocate(32 * MiB), small = self->allocate(64);
    if (self->rank() == 0) {
      fill(big.data, big.bytes, 1);
      const std::uint64_t stuck = self->send(1, 0, big, 0, big.bytes);
      for (std::uint64_t k = 0; k < 50; ++k) {
        fill(small.data, 64, k);
        self->finish(self->send(1, 1, small, 0, 64));
        check_receive(self, self->recv(1, 1, small, 0, 64), small, 0, 64, k + 1000);
      }
      self->finish(stuck);
    } else {
      for (std::uint64_t k = 0; k < 50; ++k) {
        check_receive(self, self->recv(0, 1, small, 0, 64), small, 0, 64, k);
        fill(small.data, 64, k + 1000);
        self->finish(self->send(0, 1, small, 0, 64));
      }
      check_receive(self, self->recv(0, 0, big, 0, big.bytes), big, 0, big.bytes, 1);
    }
  });
}

void crossing(const subject& which) {
  run_ranks(which, {.ranks = 2}, [](member& self) {
    const memory out = self->allocate(24 * MiB), in = self->allocate(24 * MiB);
    const std::uint32_t peer = 1 - self->rank();
    fill(out.data, out.bytes, self->rank());
    const std::uint64_t sent = self->send(peer, 0, out, 0, out.bytes);
    check_receive(self, self->recv(peer, 0, in, 0, in.bytes), in, 0, in.bytes, peer);
    self->finish(sent);
  });
}

void reuse(const subject& which) {
  run_ranks(which, {}, [](member& self) {
    for (const std::uint64_t bytes : {std::uint64_t{100}, 300 * KiB}) {
      const memory m = self->allocate(bytes);
      for (std::uint64_t k = 0; k < 40; ++k) {
        if (self->rank() == 0) {
          fill(m.data, bytes, k);
          self->finish(self->send(1, 0, m, 0, bytes));
          fill(m.data, bytes, 999);
        } else {
          check_receive(self, self->recv(0, 0, m, 0, bytes), m, 0, bytes, k);
        }
      }
    }
  });
}

void shorter(const subject& which) {
  if (caps_of(which).flags & RG_CAP_EXACT_SIZE)
    throw skipped("it requires messages as long as their receives (RG_CAP_EXACT_SIZE)");
  run_ranks(which, {}, [](member& self) {
    const memory m = self->allocate(MiB + guard);
    const std::uint64_t lengths[] = {0, 1, 1000, 9000, 600 * KiB, MiB};
    for (const std::uint64_t bytes : lengths)
      if (self->rank() == 0) {
        fill(m.data, bytes, bytes);
        self->finish(self->send(1, 0, m, 0, bytes));
      } else {
        fill(m.data + bytes, guard, 5);
        check_receive(self, self->recv(0, 0, m, 0, MiB), m, 0, bytes, bytes);
        require(is_filled(m.data + bytes, guard, 5), "a message shorter than its receive changes bytes behind its end");
      }
  });
}

void backpressure(const subject& which) {
  run_ranks(which, {}, [](member& self) {
    constexpr std::uint64_t messages = 6000, bytes = 64;
    const memory m = self->allocate(messages * bytes);
    if (self->rank() == 0) {
      fill(m.data, m.bytes, 3);
      std::vector<std::uint64_t> sends;
      std::uint64_t cookie = 0;
      // Send without polling until there is no room. That must not be an error, and must not lose accepted messages.
      while (sends.size() < messages) {
        const rg_status s = self->try_send(1, 0, m, sends.size() * bytes, bytes, cookie);
        require(s == RG_OK || s == RG_AGAIN,
                "send() returns status " + std::to_string(s) + "; expected RG_OK, or RG_AGAIN if there is no room");
        if (s == RG_AGAIN) break;
        sends.push_back(cookie);
      }
      self.barrier();
      while (sends.size() < messages) sends.push_back(self->send(1, 0, m, sends.size() * bytes, bytes));
      self->finish(sends);
    } else {
      self.barrier();
      std::vector<std::uint64_t> receives;
      for (std::uint64_t k = 0; k < messages; ++k) receives.push_back(self->recv(0, 0, m, k * bytes, bytes));
      self->finish(receives);
      require(is_filled(m.data, m.bytes, 3),
              "received bytes differ from the sent ones, or messages arrive out of order");
    }
  });
}

void beyond_2_gib(const subject& which) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  throw skipped("it takes too long under a sanitizer");
#endif
  constexpr std::uint64_t bytes = 2200 * MiB + 5;
  if (available_bytes() < 3 * bytes) throw skipped("it needs 6.5 GiB of free memory");
  // Contents are checked at three positions: at both ends, and around 2^31.
  const std::uint64_t positions[] = {0, 2048 * MiB - 4096, bytes - 8192};
  run_ranks(which, {}, [&](member& self) {
    const memory m = self->allocate(bytes);
    if (self->rank() == 0) {
      for (const std::uint64_t at : positions) fill(m.data + at, 8192, at + 1);
      self->finish(self->send(1, 0, m, 0, bytes));
    } else {
      require(self->finish(self->recv(0, 0, m, 0, bytes)) == bytes,
              "the receive of a message of more than 2 GiB completes with another length");
      for (const std::uint64_t at : positions)
        require(is_filled(m.data + at, 8192, at + 1),
                "the received bytes of a message of more than 2 GiB differ from the sent ones");
    }
  });
}

} // namespace

std::vector<test> message_tests() {
  return {
      {"sizes", "messages of 0 bytes to 64 MiB arrive unchanged, between threads and between processes", sizes, false,
       true},
      {"alignment", "messages arrive unchanged in buffers of any alignment", alignment, false, true},
      {"types", "elements of every type arrive unchanged, also of a type that is unknown to the transport", types,
       false, true},
      {"fifo", "messages of a lane arrive in order, and lanes are independent of each other", fifo, false, true},
      {"lanes", "a lane without posted receives does not block other lanes", lanes, false, true},
      {"crossing", "large messages in both directions do not block each other", crossing, false, true},
      {"reuse", "a send buffer may be overwritten as soon as its send has completed", reuse, false, true},
      {"short", "a message may be shorter than its receive", shorter, false, true},
      {"backpressure", "a send without room returns RG_AGAIN, loses no message, and succeeds later", backpressure,
       false, true},
      {"2-gib", "a message of more than 2 GiB arrives unchanged", beyond_2_gib, true, true},
  };
}

} // namespace regatta::conformance

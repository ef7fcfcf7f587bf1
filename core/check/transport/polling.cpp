// SPDX-License-Identifier: Apache-2.0
//
// Tests of poll's waiting, of wake, and of counters.
#include "check/harness/rank_group.hpp"

#include <atomic>
#include <chrono>
#include <ctime>
#include <thread>

namespace regatta::conformance {
namespace {
using clock_type = std::chrono::steady_clock;

void wake(const subject& which) {
  run_ranks(which, {}, [](member& self) {
    const memory m = self->allocate(8);
    const std::uint32_t peer = 1 - self->rank();
    const std::uint64_t never = self->recv(peer, 0, m, 0, 8);
    self->wake();
    require(self->poll(UINT64_MAX) == 0, "something completes out of nothing");

    constexpr int rounds = 300;
    std::atomic<int> begun{0}, ended{0};
    std::thread waker([&] {
      for (int i = 1; i <= rounds; ++i) {
        while (begun.load() < i) std::this_thread::yield();
        self->wake();
        while (ended.load() < i) std::this_thread::yield();
      }
    });
    for (int i = 1; i <= rounds; ++i) {
      begun.store(i);
      self->poll(UINT64_MAX, i % 2 ? 0 : 50'000);
      ended.store(i);
    }
    waker.join();
    self.meet();
    const memory out = self->allocate(8);
    self->finish(self->send(peer, 0, out, 0, 8));
    self->finish(never);
  });
}

void idle(const subject& which) {
  if (!(caps_of(which).flags & RG_CAP_SLEEP)) throw skipped("it cannot sleep");
  // In processes, because CPU time of the transport's own threads counts too.
  run_ranks(which, {.ranks = 3, .lanes = 2, .kind = as::processes}, [](member& self) {
    const memory m = self->allocate(64);
    self.meet();
    const std::uint64_t never = self->recv((self->rank() + 1) % 3, 0, m, 0, 8);
    require(self->poll(0) == 0, "something completes out of nothing");
    timespec before, after;
    const auto begin = clock_type::now();
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    while (clock_type::now() - begin < std::chrono::milliseconds(500))
      require(self->poll(second / 10) == 0, "something completes out of nothing");
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    const double used =
        static_cast<double>(after.tv_sec - before.tv_sec) + 1e-9 * static_cast<double>(after.tv_nsec - before.tv_nsec);
    // A rank that spins uses more than 0.02 s, even if many processes share the cores.
    require(used < 0.02, "waiting for 0.5 s uses " + std::to_string(used) + " s of processor time");
    self.meet();
    const std::uint64_t sent = self->send((self->rank() + 2) % 3, 0, m, 8, 8);
    self->finish(never);
    self->finish(sent);
  });
}

void spinning(const subject& which) {
  run_ranks(which, {}, [](member& self) {
    const memory m = self->allocate(64);
    const std::uint32_t peer = 1 - self->rank();
    for (std::uint64_t k = 0; k < 200; ++k) {
      const std::uint64_t received = self->recv(peer, 0, m, 0, 8), sent = self->send(peer, 0, m, 8, 8);
      const auto begin = clock_type::now();
      while (!self->ended(received) || !self->ended(sent)) {
        if (clock_type::now() - begin > std::chrono::nanoseconds(patience)) throw timed_out("spinning finds nothing");
        self->poll(second, k % 2 ? second / 1000 : 0);
      }
    }
  });
}

void counters(const subject& which) {
  run_ranks(which, {}, [](member& self) {
    constexpr std::uint64_t messages = 25;
    const memory m = self->allocate(2 * MiB);
    const rg_counters before = self->counters();
    std::uint64_t payload = 0;
    for (std::uint64_t k = 0; k < messages; ++k) {
      const std::uint64_t bytes = k * 40'000;
      payload += bytes;
      self->finish(self->rank() == 0 ? self->send(1, 0, m, 0, bytes) : self->recv(0, 0, m, 0, bytes));
    }
    self.meet(); // control messages that follow a message can arrive
    self->poll(0);
    const rg_counters after = self->counters();
    const bool sends = self->rank() == 0;
    const std::uint64_t count =
        sends ? after.messages_sent - before.messages_sent : after.messages_received - before.messages_received;
    const std::uint64_t bytes =
        sends ? after.bytes_sent - before.bytes_sent : after.bytes_received - before.bytes_received;
    require(count == messages, "counts " + std::to_string(count) + " messages");
    require(bytes >= payload, "counts fewer bytes than the payload");
    // The transport may count headers, one or more for each message.
    require(bytes <= payload + payload / 50 + 256 * messages, "counts many more bytes than the payload");
  });
}

} // namespace

const std::vector<test>& waiting_tests() {
  static const std::vector<test> all = {
      {"wake", "wake ends a poll, the one that waits or else the next", wake, false, true},
      {"idle", "a poll with nothing to do ends in time and uses no processor", idle, false, true},
      {"spin", "spinning finds what sleeping finds", spinning, false, true},
      {"counters", "counters say what crossed", counters, false, true},
  };
  return all;
}

} // namespace regatta::conformance

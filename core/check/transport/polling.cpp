// SPDX-License-Identifier: Apache-2.0
//
// Tests of poll's waiting, of wake, and of counters.
#include "check/harness/rank_group.hpp"

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <regatta/clock.hpp>
#include <regatta/ext/counters.h>

namespace regatta::conformance {
namespace {

constexpr const char* no_completion = "poll() reports a completion although no operation can have completed";

void wake(const subject& which) {
  run_ranks(which, {}, [](member& self) {
    const memory m = self->allocate(8);
    const std::uint32_t peer = 1 - self->rank();
    const std::uint64_t never = self->recv(peer, 0, m, 0, 8);
    self->wake();
    require(self->poll(UINT64_MAX) == 0, no_completion);

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
    self.barrier();
    const memory out = self->allocate(8);
    self->finish(self->send(peer, 0, out, 0, 8));
    self->finish(never);
  });
}

// Returns the CPU time of this process, in seconds, while poll() waits for half a second.
double cpu_of_waiting(member& self) {
  const std::uint64_t begin = rg::now_ns();
  const std::int64_t cpu_before = rg::read_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
  while (rg::now_ns() - begin < second / 2) require(self->poll(second / 10) == 0, no_completion);
  return 1e-9 * static_cast<double>(rg::read_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_before);
}

void idle(const subject& which) {
  if (!(caps_of(which).flags & RG_CAP_SLEEP)) throw skipped("its poll() cannot sleep (RG_CAP_SLEEP)");
  // In processes, because CPU time of the transport's own threads counts too.
  run_ranks(which, {.ranks = 3, .lanes = 2, .kind = ranks_as::processes}, [](member& self) {
    const memory m = self->allocate(64);
    self.barrier();
    const std::uint64_t never = self->recv((self->rank() + 1) % 3, 0, m, 0, 8);
    require(self->poll(0) == 0, no_completion);
    // A rank that spins uses more than 0.02 s each time, even if many processes share the cores. On a busy machine each
    // wake-up costs more, so the least of several times counts.
    constexpr double limit = 0.02;
    double used = cpu_of_waiting(self);
    for (int i = 0; i < 4 && used >= limit; ++i) used = std::min(used, cpu_of_waiting(self));
    require(used < limit,
            "0.5 s of waiting in poll() use " + std::to_string(used) + " s of CPU time; expected less than 0.02 s");
    self.barrier();
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
      const std::uint64_t begin = rg::now_ns();
      while (!self->completed(received) || !self->completed(sent)) {
        if (rg::now_ns() - begin > operation_timeout)
          throw timed_out("poll() never reports messages of 8 bytes that both ranks have sent");
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
    self.barrier(); // control messages that follow a message can arrive
    self->poll(0);
    const rg_counters after = self->counters();
    const bool sends = self->rank() == 0;
    const std::uint64_t count =
        sends ? after.messages_sent - before.messages_sent : after.messages_received - before.messages_received;
    const std::uint64_t bytes =
        sends ? after.bytes_sent - before.bytes_sent : after.bytes_received - before.bytes_received;
    require(count == messages,
            "counters() count " + std::to_string(count) + " messages instead of " + std::to_string(messages));
    require(bytes >= payload, "counters() count fewer bytes than the payload");
    // The transport may count headers, one or more for each message.
    require(bytes <= payload + payload / 50 + 256 * messages,
            "counters() count " + std::to_string(bytes) + " bytes for a payload of " + std::to_string(payload));
  });
}

void own_counters(const subject& which) {
  if (!endpoint(which, 0, 2, 1).extension<rg_own_counters>(RG_EXT_COUNTERS))
    throw skipped("it has no counters of its own (" RG_EXT_COUNTERS ")");
  run_ranks(which, {}, [](member& self) {
    const auto* own = self->extension<rg_own_counters>(RG_EXT_COUNTERS);
    const auto read = [&] {
      const rg_counter* first = nullptr;
      std::uint32_t count = 0;
      self->check(own->read(self->self(), &first, &count), "read of regatta.counters/1");
      std::vector<std::pair<std::string, double>> all; // copied: the array is valid until the next call
      for (std::uint32_t i = 0; i < count; ++i) {
        const auto c = rg::copy_versioned(rg::at_stride(first, i));
        require(c.name && *c.name, "counter " + std::to_string(i) + " of its own has no name");
        all.emplace_back(c.name, c.value);
      }
      return all;
    };
    const memory m = self->allocate(2 * MiB);
    auto before = read();
    for (std::uint64_t round = 0; round < 8; ++round) {
      self->exchange(1 - self->rank(), m, round * 100'000, round);
      const auto after = read();
      require(after.size() == before.size(), "the number of its own counters changes from call to call");
      for (std::size_t i = 0; i < after.size(); ++i) {
        require(after[i].first == before[i].first, "its own counter \"" + before[i].first + "\" becomes \"" +
                                                       after[i].first + "\": names must be the same in every call");
        require(after[i].second >= before[i].second, "its own counter \"" + after[i].first + "\" decreases");
      }
      before = after;
    }
  });
}

} // namespace

std::vector<test> polling_tests() {
  return {
      {"wake", "wake() ends the poll() that waits, or else the next one", wake, false, true},
      {"idle", "a poll() that waits returns at its timeout and uses no CPU time, the transport's threads included",
       idle, false, true},
      {"spin", "a poll() that spins reports the same completions as one that sleeps", spinning, false, true},
      {"counters", "counters() count messages exactly, and bytes as payload plus headers", counters, false, true},
      {"own-counters", "counters of its own have the same names in every call, and never decrease", own_counters, false,
       true},
  };
}

} // namespace regatta::conformance

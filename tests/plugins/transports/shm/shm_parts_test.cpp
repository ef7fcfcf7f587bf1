// SPDX-License-Identifier: Apache-2.0
//
// The parts of the shm transport that stand alone: its heap, its rings, its sleep, its sums.
#include "arithmetic.hpp"
#include "fifo.hpp"
#include "heap.hpp"
#include "ring.hpp"
#include "wake.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

using namespace shm;

namespace {

constexpr std::uint64_t MiB = 1 << 20;

bool is_zero(const void* data, std::size_t bytes) {
  const auto* p = static_cast<const unsigned char*>(data);
  return std::all_of(p, p + bytes, [](unsigned char c) { return c == 0; });
}

// One direction of a lane, both ends in this process.
struct test_ring {
  explicit test_ring(std::uint64_t capacity) : memory(sizeof(ring_state) + capacity + cache_line) {
    void* at = memory.data();
    std::size_t space = memory.size();
    at = std::align(cache_line, sizeof(ring_state) + capacity, at, space);
    auto* data = static_cast<std::byte*>(at) + sizeof(ring_state);
    out = ring_producer(static_cast<ring_state*>(at), data, capacity);
    in = ring_consumer(static_cast<ring_state*>(at), data, capacity);
  }
  bool send(std::uint64_t number, std::uint64_t bytes) {
    record* r = out.reserve(bytes);
    if (!r) {
      out.look();
      r = out.reserve(bytes);
    }
    if (!r) return false;
    r->kind = static_cast<std::uint16_t>(record_kind::part);
    r->total = number;
    r->bytes = static_cast<std::uint32_t>(bytes);
    // Payload that looks like a published header, wherever one could be expected.
    for (std::uint64_t i = 0; i + 8 <= bytes; i += 8) {
      const std::uint64_t bait = out.head() + i + 1;
      std::memcpy(r->payload() + i, &bait, 8);
    }
    out.publish_with_payload(r, bytes);
    return true;
  }
  bool pop(rg_status status, bool is_asked) {
    record* r = in.peek();
    return in.pop(r, r->bytes, status, is_asked);
  }

  std::vector<std::byte> memory;
  ring_producer out;
  ring_consumer in;
};

} // namespace

TEST_CASE("a heap gives zeroed, aligned memory, and takes it back") {
  heap h(64 * MiB);
  auto* small = static_cast<std::byte*>(h.allocate(100));
  auto* large = static_cast<std::byte*>(h.allocate(5 * MiB));
  CHECK(reinterpret_cast<std::uintptr_t>(small) % 64 == 0);
  CHECK(h.offset_of(large) % (2 * MiB) == 0);
  CHECK(h.holds(small, 100));
  CHECK(h.holds(large, 5 * MiB));
  CHECK_FALSE(h.holds(large, 64 * MiB));
  CHECK(is_zero(small, 100));
  CHECK(is_zero(large, 5 * MiB));

  std::memset(small, 1, 100);
  std::memset(large, 2, 5 * MiB);
  h.free(large);
  CHECK(small[99] == std::byte{1});
  auto* again = static_cast<std::byte*>(h.allocate(5 * MiB));
  CHECK(again == large);
  CHECK(is_zero(again, 5 * MiB));

  // Pieces join again, in whatever order they come back.
  std::vector<void*> pieces;
  h.free(small);
  h.free(again);
  for (int i = 0; i < 32; ++i) pieces.push_back(h.allocate(2 * MiB));
  CHECK_THROWS_WITH(h.allocate(1), doctest::Contains("parameter heap"));
  for (int i = 0; i < 32; i += 2) h.free(pieces[static_cast<std::size_t>(i)]);
  CHECK_THROWS(h.allocate(3 * MiB));
  for (int i = 1; i < 32; i += 2) h.free(pieces[static_cast<std::size_t>(i)]);
  CHECK(h.allocate(64 * MiB) != nullptr);
}

TEST_CASE("a heap refuses what it cannot hold, whatever is asked") {
  heap h(4 * MiB);
  CHECK_THROWS(h.allocate(4 * MiB + 1));
  CHECK_THROWS(h.allocate(UINT64_MAX));
  CHECK(h.allocate(4 * MiB) != nullptr);
  h.free(nullptr);
}

TEST_CASE("memory of ranks cannot be shrunk under a peer that maps it") {
  const heap h(4 * MiB);
  CHECK(::ftruncate(h.descriptor().get(), 4096) != 0);
  CHECK(sealed_size(h.descriptor()) == 4 * MiB);
  const file_descriptor unsealed(::memfd_create("unsealed", MFD_CLOEXEC));
  CHECK_THROWS(sealed_size(unsealed));
}

TEST_CASE("a ring keeps records whole and in order, round after round") {
  test_ring ring(4096);
  std::uint64_t sent = 0, received = 0;
  const auto size_of = [](std::uint64_t number) { return number * 37 % 700; };
  for (int round = 0; round < 3000; ++round) {
    // Bursts of changing length, so that every fill level and every place of the wrap is met.
    for (int burst = round % 7 + 1; burst > 0 && ring.send(sent, size_of(sent)); --burst) ++sent;
    for (int burst = round % 5 + 1; burst > 0; --burst) {
      record* r = ring.in.peek();
      if (!r) break;
      REQUIRE(ring.in.is_sound(r->bytes));
      REQUIRE(r->total == received);
      REQUIRE(r->bytes == size_of(received));
      ring.in.pop(r, r->bytes, RG_OK, received++ % 3 == 0);
    }
  }
  CHECK(sent > 3000);
  while (record* r = ring.in.peek()) {
    REQUIRE(r->total == received++);
    ring.in.pop(r, r->bytes, RG_OK, true);
  }
  CHECK(received == sent);
}

TEST_CASE("a full ring refuses, and has room again once records are passed") {
  test_ring ring(4096);
  std::uint64_t sent = 0;
  while (ring.send(sent, 32)) ++sent;
  CHECK(sent == 4096 / 64 - 1); // one line stays free for the header to come
  ring.out.starve();
  CHECK(ring.out.reserve(32) == nullptr);
  const std::uint64_t end = ring.out.head();
  CHECK_FALSE(ring.out.passed(end));
  std::uint64_t told = 0;
  for (std::uint64_t k = 0; k < sent; ++k) told += ring.pop(RG_OK, false);
  CHECK(ring.in.peek() == nullptr);
  CHECK(told == 1); // it asked once
  CHECK(ring.send(0, 32));
  CHECK_FALSE(ring.out.passed(end)); // no rank waits for the last records
  CHECK(ring.pop(RG_OK, true));
  CHECK(ring.out.passed(end));
}

TEST_CASE("a ring has room for any record, however little its consumer says") {
  test_ring ring(4096);
  for (std::uint64_t k = 0; k < 2000; ++k) {
    const std::uint64_t bytes = k % 3 == 0 ? ring.out.largest_part() : k * 41 % 700;
    REQUIRE(ring.send(k, bytes));
    record* r = ring.in.peek();
    REQUIRE(r);
    REQUIRE(r->total == k);
    ring.in.pop(r, r->bytes, RG_OK, false);
  }
}

TEST_CASE("the status of records stays readable until the producer has looked") {
  test_ring ring(4096);
  record* const first = ring.out.reserve(32);
  while (ring.send(0, 32)) {
  }
  while (record* r = ring.in.peek()) ring.in.pop(r, r->bytes, RG_E_OPERATION, true);
  CHECK(ring.out.reserve(32) == nullptr); // there is room, but the producer has not seen it
  CHECK(first->status.load() == RG_E_OPERATION);
  ring.out.look();
  CHECK(first->status.load() == RG_E_OPERATION);
  CHECK(ring.out.reserve(32) != nullptr);
}

TEST_CASE("a ring carries records between threads") {
  test_ring ring(4096);
  constexpr std::uint64_t records = 20'000;
  std::thread producer([&] {
    for (std::uint64_t k = 0; k < records; ++k)
      while (!ring.send(k, k % 500)) std::this_thread::yield();
  });
  bool in_order = true;
  for (std::uint64_t k = 0; k < records; ++k) {
    record* r = nullptr;
    while (!(r = ring.in.peek())) std::this_thread::yield();
    in_order &= r->total == k && r->bytes == k % 500;
    ring.in.pop(r, r->bytes, RG_OK, false);
  }
  producer.join();
  CHECK(in_order);
}

// Two threads take turns, each sleeping until the other has moved: a wake-up that is lost would leave both asleep.
TEST_CASE("no wake-up is lost") {
  struct side {
    sleep_word word{};
    std::atomic<std::uint64_t> news{0};
  } sides[2];
  constexpr std::uint64_t turns = 5000, patience_ns = 20'000'000'000;
  std::atomic<int> lost{0};
  const auto wait_for = [&](side& own, std::uint64_t turn) {
    while (own.news.load() < turn) {
      own.word.lie_down();
      if (own.news.load() >= turn) {
        own.word.get_up();
      } else {
        const auto before = std::chrono::steady_clock::now();
        own.word.sleep(patience_ns);
        if (std::chrono::steady_clock::now() - before > std::chrono::nanoseconds(patience_ns / 2)) ++lost;
      }
    }
  };
  std::thread other([&] {
    for (std::uint64_t turn = 1; turn <= turns; ++turn) {
      wait_for(sides[1], turn);
      sides[0].news.store(turn);
      static_cast<void>(sides[0].word.wake());
    }
  });
  for (std::uint64_t turn = 1; turn <= turns; ++turn) {
    sides[1].news.store(turn);
    static_cast<void>(sides[1].word.wake());
    wait_for(sides[0], turn);
  }
  other.join();
  CHECK(lost == 0);
}

TEST_CASE("sums are formed in order, for any count and alignment") {
  for (const std::size_t terms : {1u, 2u, 3u, 5u})
    for (const std::size_t count : {0u, 1u, 15u, 16u, 33u, 2047u, 2049u, 5000u})
      for (const std::size_t shift : {0u, 1u, 3u}) {
        std::vector<std::vector<float>> data(terms, std::vector<float>(count + shift + 1, 77.0f));
        std::vector<float> expected(count);
        std::vector<const float*> from;
        std::vector<float*> to;
        for (std::size_t t = 0; t < terms; ++t) {
          for (std::size_t i = 0; i < count; ++i) {
            const float x = 1.0f / static_cast<float>(i * terms + t + 1) * (t % 2 ? -1e3f : 1.0f);
            data[t][shift + i] = x;
            expected[i] = t == 0 ? x : expected[i] + x;
          }
          from.push_back(data[t].data() + shift);
          to.push_back(data[t].data() + shift);
        }
        sum_to_all(from, to, count);
        for (const auto& d : data) {
          REQUIRE(std::equal(expected.begin(), expected.end(), d.begin() + static_cast<std::ptrdiff_t>(shift)));
          REQUIRE(d[count + shift] == 77.0f);
        }
        if (terms == 1) {
          std::vector<float> target(count, 0.5f);
          add(target.data(), data[0].data() + shift, count);
          for (std::size_t i = 0; i < count; ++i) REQUIRE(target[i] == 0.5f + expected[i]);
        }
      }
}

// As in a reduce-scatter: the sum goes to one array, which may be any of the terms; the other terms stay as they are.
TEST_CASE("sums into one of their terms") {
  for (const std::size_t count : {1u, 17u, 2048u, 5000u})
    for (std::size_t terms = 1; terms <= 4; ++terms)
      for (std::size_t only = 0; only < terms; ++only) {
        CAPTURE(count);
        CAPTURE(terms);
        CAPTURE(only);
        std::vector<std::vector<float>> data(terms, std::vector<float>(count + 1, 77.0f));
        std::vector<float> expected(count);
        std::vector<const float*> from;
        for (std::size_t t = 0; t < terms; ++t) {
          for (std::size_t i = 0; i < count; ++i) {
            const float x = 1.0f / static_cast<float>(i * terms + t + 1) * (t % 2 ? -1e3f : 1.0f);
            data[t][i] = x;
            expected[i] = t == 0 ? x : expected[i] + x;
          }
          from.push_back(data[t].data());
        }
        const std::vector<std::vector<float>> before = data;
        float* const to[] = {data[only].data()};
        sum_to_all(from, to, count);
        for (std::size_t t = 0; t < terms; ++t)
          if (t != only) REQUIRE(data[t] == before[t]);
        REQUIRE(std::equal(expected.begin(), expected.end(), data[only].begin()));
        REQUIRE(data[only][count] == 77.0f);
      }
}

TEST_CASE("a queue keeps its order while it grows and goes round") {
  fifo<int> q;
  int pushed = 0, popped = 0;
  for (int round = 0; round < 500; ++round) {
    for (int i = 0; i < round % 9; ++i) q.push_back(pushed++);
    for (int i = 0; i < round % 7 && !q.empty(); ++i) {
      REQUIRE(q.front() == popped++);
      q.pop_front();
    }
    REQUIRE(static_cast<int>(q.size()) == pushed - popped);
    if (!q.empty()) REQUIRE(q.back() == pushed - 1);
  }
}

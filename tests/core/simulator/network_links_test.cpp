// SPDX-License-Identifier: Apache-2.0
#include "simulator/links.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

using namespace regatta;

namespace {

constexpr double unlimited = std::numeric_limits<double>::infinity();

// Sends messages at given times, and keeps when each left and was delivered.
class road : message_sink {
public:
  road(const network_options& options, std::vector<std::uint32_t> link_of)
      : links_(std::move(link_of), options, events_, messages_, *this) {}

  // Returns the message's number.
  std::uint32_t send(std::uint32_t from, std::uint32_t to, std::uint64_t bytes, std::uint16_t lane = 0,
                     std::uint32_t channel = 0) {
    const std::uint32_t m = messages_.take();
    network_message& x = messages_[m];
    x.from = from;
    x.to = to;
    x.lane = lane;
    x.channel = channel;
    x.bytes = bytes;
    links_.submit(m);
    return m;
  }
  void pass_to(std::uint64_t time) {
    for (;;) {
      while (events_.next() <= events_.now()) links_.handle(events_.pop());
      if (links_.end_instant()) continue;
      if (events_.next() > time) break;
      links_.handle(events_.pop());
    }
    events_.advance(time);
  }
  void pass() { pass_to(1'000'000'000); }
  std::map<std::uint32_t, std::uint64_t> left_at, delivered_at;
  bool adding = false;
  std::uint64_t late = 0; // ns that processors wait for a core
  // By rank and whether it receives: ns and end of its processor's work.
  std::map<std::pair<std::uint32_t, bool>, std::vector<std::pair<std::uint64_t, std::uint64_t>>> worked;

private:
  void left(std::uint32_t m) override {
    left_at[m] = events_.now();
    links_.travel(m);
  }
  void arrived(std::uint32_t m) override { links_.receive(m); }
  void delivered(std::uint32_t m) override { delivered_at[m] = events_.now(); }
  bool adds(const network_message&) const override { return adding; }
  std::uint64_t works(std::uint32_t rank, bool receives, std::uint64_t earliest, std::uint64_t ns) override {
    worked[{rank, receives}].emplace_back(ns, earliest + late + ns);
    return earliest + late;
  }

  event_queue events_;
  slab<network_message> messages_;
  links links_;
};

network_options one_link(link_order order) {
  return {.latency_ns = 10, .bytes_per_ns = 2, .order = order};
}
network_options full_duplex(link_order order, double in = 1) {
  network_options x;
  x.order = order;
  x.links.assign(4, {.out_bytes_per_ns = 1, .in_bytes_per_ns = in, .latency_ns = 10});
  return x;
}
const std::vector<std::uint32_t> four = {0, 1, 2, 3};

} // namespace

TEST_CASE("in turn: one message after the other, lower lanes first, without interruption") {
  road r(one_link(link_order::in_turn), four);
  const auto a = r.send(0, 1, 100, 3), b = r.send(0, 2, 100, 5), c = r.send(0, 3, 40, 1);
  r.pass();
  CHECK(r.left_at == std::map<std::uint32_t, std::uint64_t>{{a, 50}, {c, 70}, {b, 120}});
  CHECK(r.delivered_at == std::map<std::uint32_t, std::uint64_t>{{a, 60}, {c, 80}, {b, 130}});
}

TEST_CASE("shared: messages of one time leave together, those of an earlier time before") {
  road r(one_link(link_order::shared), four);
  const auto a = r.send(0, 1, 100), b = r.send(0, 2, 60);
  r.pass_to(20);
  const auto c = r.send(0, 3, 40);
  r.pass();
  CHECK(r.left_at == std::map<std::uint32_t, std::uint64_t>{{a, 80}, {b, 80}, {c, 100}});
}

TEST_CASE("shared: a lower lane interrupts, and the link does no less") {
  road r(one_link(link_order::shared), four);
  const auto a = r.send(0, 1, 100, 2), b = r.send(0, 2, 100, 2);
  r.pass_to(30);
  const auto c = r.send(0, 3, 40, 0);
  r.pass_to(31);
  const auto d = r.send(0, 3, 8, 1); // after c, before what was interrupted
  r.pass();
  CHECK(r.left_at == std::map<std::uint32_t, std::uint64_t>{{c, 50}, {d, 54}, {a, 124}, {b, 124}});
}

TEST_CASE("a message passes both ends at once, and a busy receiver delays it") {
  for (const link_order order : {link_order::in_turn, link_order::shared}) {
    CAPTURE(order == link_order::shared);
    road alone(full_duplex(order), four);
    const auto x = alone.send(0, 3, 100);
    alone.pass();
    CHECK(alone.delivered_at[x] == 110); // bytes and latency, once
    // Three senders at full rate: the receiver's link needs 300 ns for all bytes, from when the first one comes.
    road r(full_duplex(order), four);
    const auto a = r.send(0, 3, 100), b = r.send(1, 3, 100), c = r.send(2, 3, 100);
    r.pass();
    CHECK(std::max({r.delivered_at[a], r.delivered_at[b], r.delivered_at[c]}) == 310);
    CHECK(r.delivered_at[a] == (order == link_order::shared ? 310 : 110));
    // Slow senders do not make it wait: their bytes come between each other's.
    network_options slow = full_duplex(order);
    for (int k : {0, 1, 2}) slow.links[static_cast<std::size_t>(k)].out_bytes_per_ns = 0.25;
    road s(slow, four);
    const auto d = s.send(0, 3, 100);
    s.pass_to(4);
    const auto e = s.send(1, 3, 100), f = s.send(2, 3, 100);
    s.pass();
    CHECK(s.delivered_at[d] == 410);
    CHECK(s.delivered_at[e] == 414);
    CHECK(s.delivered_at[f] == 414);
  }
}

TEST_CASE("ranks on one link share it, and have one of their own for each other") {
  network_options x = full_duplex(link_order::in_turn, unlimited);
  x.inside = {.out_bytes_per_ns = 10, .latency_ns = 3};
  road r(x, {0, 0, 1, 1});
  const auto a = r.send(0, 2, 100), b = r.send(1, 3, 100), c = r.send(0, 1, 100), d = r.send(1, 0, 100);
  r.pass();
  CHECK(r.delivered_at == std::map<std::uint32_t, std::uint64_t>{{a, 110}, {b, 210}, {c, 13}, {d, 13}});
}

TEST_CASE("overheads: processors at both ends, which work while bytes are on the link") {
  for (const link_order order : {link_order::in_turn, link_order::shared}) {
    CAPTURE(order == link_order::shared);
    network_options x = full_duplex(order, unlimited);
    x.overhead_ns = 7;
    x.gap_ns = 5;
    {
      road r(x, four);
      const auto m = r.send(0, 1, 100);
      r.pass();
      CHECK(r.left_at[m] == 7 + 5 + 100);       // o + g + G
      CHECK(r.delivered_at[m] == 112 + 10 + 7); // + L + o
    }
    x.overhead_ns_per_byte = 3; // slower than the link
    {
      road r(x, four);
      const auto m = r.send(0, 1, 100);
      r.pass();
      CHECK(r.left_at[m] == 7 + 300);
      CHECK(r.worked == decltype(r.worked){{{0, false}, {{307, 307}}}, {{1, true}, {{307, r.delivered_at[m]}}}});
      CHECK(r.delivered_at[m] == 7 + 10 + 7 + 300 + (r.left_at[m] - 307)); // while its bytes come
    }
    {
      road r(x, four);
      r.late = 1000;
      const auto m = r.send(0, 1, 100);
      r.pass();
      CHECK(r.left_at[m] >= 1307);
      CHECK(r.worked == decltype(r.worked){{{0, false}, {{307, 1307}}}, {{1, true}, {{307, r.delivered_at[m]}}}});
      CHECK(r.delivered_at[m] > r.left_at[m] + 1000);
    }
    x.overhead_ns_per_byte = 0;
    x.add_ns_per_byte = 4;
    {
      road r(x, four);
      r.adding = true;
      const auto m = r.send(0, 1, 100);
      r.pass();
      CHECK(r.delivered_at[m] == 7 + 10 + 400 + 7);
    }
  }
}

TEST_CASE("a processor does one thing at a time, and senders and receivers share the work as send_share says") {
  for (const link_order order : {link_order::in_turn, link_order::shared}) {
    CAPTURE(order == link_order::shared);
    const auto delivered = [&](double send_share) {
      network_options x = full_duplex(order, unlimited);
      x.overhead_ns_per_byte = 3;
      x.send_share = send_share;
      road r(x, four);
      const auto there = r.send(0, 1, 100), back = r.send(1, 0, 100);
      r.pass();
      CHECK(r.delivered_at[there] == r.delivered_at[back]);
      return r.delivered_at[there];
    };
    CHECK(delivered(0.5) == 600);    // 300 for its send, then 300 for its receive
    CHECK(delivered(1) == 600 + 10); // the last byte leaves after 600
    CHECK(delivered(0) == 10 + 600); // the first byte comes after 10
  }
}

TEST_CASE("bytes of a message beyond large_from are more work, for its sender and its receiver alike") {
  for (const link_order order : {link_order::in_turn, link_order::shared}) {
    CAPTURE(order == link_order::shared);
    network_options x = full_duplex(order, unlimited);
    x.overhead_ns_per_byte = 3;
    x.large_from = 100;
    x.large_factor = 5;
    road r(x, four);
    const auto at = r.send(0, 1, 100), small = r.send(2, 3, 60), other = r.send(2, 3, 60);
    r.pass();
    // A receive begins 10 after its send, with the first byte.
    CHECK(r.delivered_at[at] == 10 + 300);
    CHECK(std::max(r.delivered_at[small], r.delivered_at[other]) == 10 + 360); // neither is large
    road s(x, four);
    const auto large = s.send(0, 1, 140);
    s.pass();
    CHECK(s.delivered_at[large] == 10 + 300 + 40 * 15);
    CHECK(s.worked[{0, false}].front().first == 900);
    CHECK(s.worked[{1, true}].front().first == 900);
  }
}

TEST_CASE("switches: messages between groups share their links, up and down") {
  for (const link_order order : {link_order::in_turn, link_order::shared}) {
    CAPTURE(order == link_order::shared);
    network_options x = full_duplex(order, unlimited);
    x.tiers = {{{0, 0, 1, 1}, 0.5}};
    road r(x, four);
    const auto inside = r.send(0, 1, 100), other = r.send(3, 2, 100);
    r.pass();
    CHECK(r.delivered_at[inside] == 110);
    CHECK(r.delivered_at[other] == 110);
    road s(x, four);
    const auto a = s.send(0, 2, 100), b = s.send(1, 3, 100), back = s.send(3, 0, 100);
    s.pass();
    CHECK(s.delivered_at[back] == 10 + 200); // nothing else goes that way
    CHECK(std::max(s.delivered_at[a], s.delivered_at[b]) == 10 + 400);
    CHECK(s.delivered_at[a] == (order == link_order::shared ? 410 : 210));
  }
}

TEST_CASE("switches of several tiers: the narrowest on the way bounds the rate, those below the common one are free") {
  network_options x;
  x.order = link_order::shared;
  x.links.assign(8, {.out_bytes_per_ns = 1, .in_bytes_per_ns = 1, .latency_ns = 10});
  x.tiers = {{{0, 0, 1, 1, 2, 2, 3, 3}, 0.5}, {{0, 0, 0, 0, 1, 1, 1, 1}, 0.25}};
  const std::vector<std::uint32_t> ranks = {0, 1, 2, 3, 4, 5, 6, 7};
  road r(x, ranks);
  const auto far = r.send(0, 7, 100), near = r.send(3, 1, 100), beside = r.send(4, 5, 100);
  r.pass();
  CHECK(r.delivered_at[far] == 10 + 400);
  CHECK(r.delivered_at[near] == 10 + 200);
  CHECK(r.delivered_at[beside] == 10 + 100);
}

TEST_CASE("jitter: an extra latency by the seed, and the order of a channel is kept") {
  const auto delivered = [](std::uint64_t seed) {
    network_options x = full_duplex(link_order::shared, unlimited);
    x.links[1].jitter_ns = 1000;
    x.seed = seed;
    road r(x, four);
    std::vector<std::uint64_t> at;
    std::vector<std::uint32_t> sent;
    for (std::uint64_t k = 0; k < 50; ++k) {
      sent.push_back(r.send(0, 1, 10, 0, 1));
      r.pass_to(10 * (k + 1));
    }
    const auto steady = r.send(2, 3, 10, 0, 2);
    r.pass();
    CHECK(r.delivered_at[steady] == 500 + 20);
    for (const std::uint32_t m : sent) at.push_back(r.delivered_at[m]);
    CHECK(std::ranges::is_sorted(at));
    for (std::uint64_t k = 0; k < 50; ++k) {
      CHECK(at[k] >= 10 * (k + 1) + 10);
      CHECK(at[k] <= 10 * 50 + 1010);
    }
    CHECK(at.front() != at.back());
    return at;
  };
  CHECK(delivered(1) == delivered(1));
  CHECK(delivered(1) != delivered(2));
}

// SPDX-License-Identifier: Apache-2.0
//
// A peer that writes nonsense into the memory that it shares with a rank is distrusted; nothing it says is followed.
#include "collectives.hpp"
#include "doorbell.hpp"
#include "lying_peer.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace shm;

namespace {

constexpr auto part = static_cast<std::uint16_t>(record_kind::part);
constexpr auto direct = static_cast<std::uint16_t>(record_kind::direct);

struct record_said {
  std::uint16_t kind;
  std::uint64_t total, offset;
  std::uint32_t bytes;
};

// The status of a receive of 64 bytes.
rg_status receives(const record_said& said, bool adds = false) {
  lying_peer p;
  std::vector<float> buffer(16);
  p.rank().receive(lying_peer::transfer(buffer.data(), 1, adds), 64);
  REQUIRE(p.say(said.kind, said.total, said.offset, said.bytes));
  p.rank().progress(0);
  return p.completed();
}

} // namespace

TEST_CASE("records that say what cannot be end the peer, not the rank") {
  CHECK(receives({direct, 64, 0, 0}) == RG_OK);
  CHECK(receives({direct, 64, 3, 0}, true) == RG_OK); // floats may lie anywhere
  CHECK(receives({9, 64, 0, 0}) == RG_E_PEER);        // of no kind
  CHECK(receives({0, 64, 0, 0}) == RG_E_PEER);
  CHECK(receives({direct, 64, std::uint64_t{1} << 40, 0}) == RG_E_PEER); // outside its heap
  CHECK(receives({direct, 64, UINT64_MAX - 8, 0}) == RG_E_PEER);
  CHECK(receives({part, 64, 0, 6}, true) == RG_E_PEER);            // half a float
  CHECK(receives({part, 64, 0, 65}) == RG_E_PEER);                 // more than the message has
  CHECK(receives({part, UINT64_MAX, 0, UINT32_MAX}) == RG_E_PEER); // more than the ring has
  CHECK(receives({direct, 65, 0, 0}) == RG_E_OPERATION);           // longer than the receive: the transport goes on
}

TEST_CASE("a direct record's claim of payload moves nothing") {
  lying_peer p;
  std::vector<float> buffer(16);
  for (std::uint64_t k = 0; k < 3; ++k) {
    p.rank().receive(lying_peer::transfer(buffer.data(), k), 64);
    REQUIRE(p.say(direct, 64, 0, k == 1 ? 0xffff'ffffu : 0));
    p.rank().progress(0);
    CHECK(p.completed() == RG_OK);
  }
}

TEST_CASE("the outcome of a send is one of two, whatever the receiver writes") {
  for (const auto& [said, status] : {std::pair{std::int16_t{RG_OK}, rg_status{RG_OK}},
                                     {std::int16_t{RG_E_OPERATION}, rg_status{RG_E_OPERATION}},
                                     {std::int16_t{77}, rg_status{RG_E_OPERATION}},
                                     {std::int16_t{RG_AGAIN}, rg_status{RG_E_OPERATION}}}) {
    lying_peer p;
    const std::vector<std::byte> message(2048); // longer than eager: its send waits for the outcome
    p.rank().send(lying_peer::transfer(message.data(), 1), message.size());
    record* r = p.in.peek();
    REQUIRE(r != nullptr);
    p.in.pop(r, r->bytes, said, true);
    p.rank().progress(0);
    CHECK(p.completed() == status);
  }
}

TEST_CASE("one call copies about a unit of work into a large ring, so that an urgent lane waits no longer") {
  lying_peer p(0, 4 << 20);
  const std::vector<std::byte> message(3 << 20); // outside the heap: it goes through the ring in parts
  std::uint64_t taken = 0;
  const auto take_all = [&] {
    std::uint64_t bytes = 0;
    for (record* r; (r = p.in.peek()) != nullptr;) {
      bytes += r->bytes;
      p.in.pop(r, r->bytes, RG_OK, taken + bytes == message.size());
    }
    taken += bytes;
    return bytes;
  };
  p.rank().send(lying_peer::transfer(message.data(), 1), message.size());
  CHECK(take_all() == unit_bytes);
  while (p.rank().progress(0)) CHECK(take_all() <= unit_bytes);
  CHECK(taken == message.size());
  CHECK(p.completed() == RG_OK);
}

TEST_CASE("a peer that broke the protocol stays barred from the heap after leave()") {
  lying_peer p;
  std::vector<float> buffer(16);
  p.rank().receive(lying_peer::transfer(buffer.data(), 1), 64);
  REQUIRE(p.say(9, 64, 0, 0));
  p.rank().progress(0);
  REQUIRE(p.completed() == RG_E_PEER);
  const auto& closed = p.home.control.link(1).owner.closed;
  REQUIRE(closed.load() == closing::cancelled);
  p.rank().leave();
  CHECK(closed.load() == closing::cancelled);
}

TEST_CASE("after a broken record on one lane, nothing is taken from the peer on any other lane") {
  lying_peer p;
  std::vector<float> first(16), second(16, 7);
  rg_transfer on_lane_1 = lying_peer::transfer(second.data(), 2);
  on_lane_1.lane = 1;
  p.rank().receive(lying_peer::transfer(first.data(), 1), 64);
  p.rank().receive(on_lane_1, 64);
  REQUIRE(p.say(direct, 64, 0, 0, 1));
  REQUIRE(p.say(9, 64, 0, 0));
  p.rank().progress(0);
  REQUIRE(p.completed() == RG_E_PEER);
  p.rank().progress(1);
  CHECK(p.completed() == RG_E_PEER);
  CHECK(second == std::vector<float>(16, 7));
}

namespace {

constexpr std::uint32_t both[] = {0, 1};

// The message by which rank 0 says where the state of the group of both ranks is.
group_notice notice_of_both() {
  return {.offset = 0, .members = 2, .fingerprint = group_fingerprint(both)};
}

} // namespace

TEST_CASE("a wake-up that comes late does not stand in the way of split()") {
  lying_peer p(1);
  REQUIRE(p.send("", 1));
  const group_notice n = notice_of_both();
  REQUIRE(p.send(&n, sizeof n));
  CHECK_NOTHROW(group(p.home, both, 1'000'000'000));
}

TEST_CASE("a rank that waits for its descriptor keeps the notice of a group for split()") {
  lying_peer p(1);
  doorbell waiting;
  waiting.arm({&p.rank()});
  const group_notice n = notice_of_both();
  REQUIRE(p.send(&n, sizeof n));
  REQUIRE(p.send("", 1));
  CHECK_FALSE(waiting.disarm());
  CHECK_NOTHROW(group(p.home, both, 1'000'000'000));
}

TEST_CASE("after an error in arm(), the next call watches all peers") {
  lying_peer first(1), second(1);
  doorbell waiting;
  CHECK_THROWS_AS(waiting.arm({&first.rank(), &first.rank(), &second.rank()}), rg::error); // epoll takes a socket once
  CHECK_FALSE(waiting.is_armed());
  waiting.arm({&first.rank(), &second.rank()});
  second.hang_up();
  CHECK(waiting.disarm());
}

TEST_CASE("split() ends with the peer's error: no notice in time, one of another group, a closed socket") {
  lying_peer p(1);
  CHECK_THROWS_WITH_AS(group(p.home, both, 2'000'000), doctest::Contains("in time"), rg::error);
  group_notice n = notice_of_both();
  ++n.fingerprint;
  REQUIRE(p.send(&n, sizeof n));
  CHECK_THROWS_WITH_AS(group(p.home, both, 1'000'000'000), doctest::Contains("other members"), rg::error);
  p.hang_up();
  CHECK_THROWS_WITH_AS(group(p.home, both, 1'000'000'000), doctest::Contains("closed its connection"), rg::error);
}

TEST_CASE("leave() tells a peer that kept to the protocol") {
  lying_peer p;
  p.rank().leave();
  CHECK(p.home.control.link(1).owner.closed.load() == closing::left);
}

TEST_CASE("control memory is rejected if its rings lie outside it") {
  constexpr std::uint32_t size = 1 << 16, lanes = std::uint32_t{1} << 31;
  constexpr std::uint64_t bytes = 16 << 20; // the header and the links need half of it
  const file_descriptor forged = make_sealed_memory("forged", bytes);
  const mapping memory(forged, bytes, "forged control memory");
  auto& header = *reinterpret_cast<control_header*>(memory.base());
  header.mark = control_header::magic;
  header.rank = 1;
  header.size = size;
  header.lanes = lanes;
  header.ring_bytes = (1 << 17) - sizeof(ring_state); // 2^47 rings of 2^17 bytes: 2^64, which is 0 in 64 bits
  CHECK_THROWS_WITH(control_area(forged, 1, size, lanes), "shm: rank 1 sent control memory of a wrong size");
}

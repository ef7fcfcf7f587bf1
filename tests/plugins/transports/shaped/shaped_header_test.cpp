// SPDX-License-Identifier: Apache-2.0
//
// Headers of `shaped`: the chunks that they announce, and the refusal of wrong ones. A rank of `shaped` over tcp talks
// to ranks of plain tcp, which see the headers and the chunks as they are sent, and may send others.
#include "check/harness/endpoint.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <thread>

using namespace regatta;
using namespace regatta::conformance;

namespace {

constexpr double bits_per_second = 1e9;
constexpr std::uint64_t ms_of_link = 125'000; // bytes
constexpr std::uint64_t message_bytes = 256 * KiB;

struct header {
  std::uint64_t length, chunk;
};
static_assert(sizeof(header) == 16);

const registry& plugins() {
  static const auto both = registry::of_files({REGATTA_PLUGINS "/tcp.so", REGATTA_PLUGINS "/shaped.so"});
  return both;
}

const subject& transport(const std::string& id) {
  static const auto of = [](const std::string& which) {
    subject s = {.file = plugins().find(kind::transport, which).file,
                 .plugins = &plugins(),
                 .tested = &plugins().find(kind::transport, which),
                 .parameters = {},
                 .other_files = {},
                 .seed = 1};
    if (which == "shaped") s.parameters["bandwidth"] = bits_per_second;
    return s;
  };
  static const subject tcp = of("tcp"), shaped = of("shaped");
  return id == "tcp" ? tcp : shaped;
}

// Rank 0 has the transport `shaped` over tcp, the other ranks have tcp.
struct shaped_among_plain {
  explicit shaped_among_plain(std::uint32_t ranks) {
    std::vector<std::vector<std::uint8_t>> blobs;
    for (std::uint32_t r = 0; r < ranks; ++r) {
      all.push_back(std::make_unique<endpoint>(transport(r == 0 ? "shaped" : "tcp"), r, ranks, 1));
      blobs.push_back(all.back()->listen());
    }
    std::vector<rg_status> connected(ranks, RG_E_PEER);
    std::vector<std::thread> others;
    for (std::uint32_t r = 0; r < ranks; ++r)
      others.emplace_back([&, r] { connected[r] = all[r]->try_connect(blobs, connect_timeout); });
    for (std::thread& t : others) t.join();
    for (std::uint32_t r = 0; r < ranks; ++r) all[r]->check(connected[r], "connect");
  }
  endpoint& shaped() { return *all.front(); }
  endpoint& plain(std::uint32_t rank) { return *all.at(rank); }

  // Polls all ranks until the operation of this one has completed, with any status.
  rg_completion wait(endpoint& of, std::uint64_t cookie) {
    for (const std::uint64_t end = rg::now_ns() + operation_timeout; !of.completed(cookie) && rg::now_ns() < end;)
      for (const auto& e : all) e->poll(0);
    REQUIRE_MESSAGE(of.completed(cookie), "the operation has not completed in time");
    return of.wait(cookie);
  }

  std::vector<std::unique_ptr<endpoint>> all;
};

// Sends a message to each of `peers` at once, and returns the header that each of them gets. Checks that its chunks are
// as long as announced.
std::vector<header> headers_of(shaped_among_plain& all, std::uint32_t peers) {
  const memory from = all.shaped().allocate(message_bytes);
  std::vector<std::uint64_t> sent;
  for (std::uint32_t p = 1; p <= peers; ++p) sent.push_back(all.shaped().send(p, 0, from, 0, message_bytes));
  std::vector<header> got(peers);
  for (std::uint32_t p = 1; p <= peers; ++p) {
    CAPTURE(p);
    endpoint& plain = all.plain(p);
    const memory to = plain.allocate(message_bytes);
    const auto next = [&] {
      const rg_completion c = all.wait(plain, plain.recv(0, 0, to, 0, message_bytes));
      REQUIRE(c.status == RG_OK);
      return c.bytes;
    };
    REQUIRE(next() == sizeof(header));
    header& h = got[p - 1];
    std::memcpy(&h, to.data, sizeof h);
    CHECK(h.length == message_bytes);
    REQUIRE(h.chunk > 0);
    for (std::uint64_t at = 0; at < message_bytes; at += h.chunk)
      REQUIRE(next() == std::min(h.chunk, message_bytes - at));
  }
  for (const std::uint64_t s : sent) CHECK(all.wait(all.shaped(), s).status == RG_OK);
  return got;
}

// Returns how a receive of rank 0 ends if rank 1 sends it these bytes as the header; `error` is rank 0's text.
rg_status status_of(const void* sent, std::uint64_t bytes, std::string& error) {
  shaped_among_plain all(2);
  const memory to = all.shaped().allocate(message_bytes), from = all.plain(1).allocate(sizeof(header));
  std::memcpy(from.data, sent, bytes);
  const std::uint64_t received = all.shaped().recv(1, 0, to, 0, message_bytes);
  const std::uint64_t later = all.shaped().recv(1, 0, to, 0, message_bytes);
  all.plain(1).send(0, 0, from, 0, bytes);
  const rg_status status = all.wait(all.shaped(), received).status;
  error = all.shaped().last_error();
  CHECK(all.wait(all.shaped(), later).status == RG_E_PEER);
  std::uint64_t cookie = 0;
  CHECK(all.shaped().try_send(1, 0, to, 0, 1, cookie) == RG_E_PEER);
  return status;
}

} // namespace

TEST_CASE("shaped: a message to one peer has chunks of 1 ms of the link") {
  shaped_among_plain all(2);
  CHECK(headers_of(all, 1).front().chunk == ms_of_link / 64 * 64);
}

// With large chunks, a peer's card would be idle for a millisecond each time another peer is served.
TEST_CASE("shaped: messages to several peers at once have chunks of a quarter of that") {
  constexpr std::uint32_t peers = 3;
  shaped_among_plain all(1 + peers);
  for (const header& h : headers_of(all, peers)) CHECK(h.chunk == ms_of_link / 4 / 64 * 64);
}

TEST_CASE("shaped: a header of another size is refused, as of a peer with another version") {
  const std::uint64_t length_alone = message_bytes;
  std::string error;
  CHECK(status_of(&length_alone, sizeof length_alone, error) == RG_E_PEER);
  CHECK(error ==
        "shaped: rank 1 sent a header of 8 bytes, expected 16: use the same version of this transport on all ranks");
}

TEST_CASE("shaped: a header whose chunks are empty or no multiple of 64 is refused") {
  for (const std::uint64_t chunk : {0, 100}) {
    const header h = {.length = message_bytes, .chunk = chunk};
    std::string error;
    CHECK(status_of(&h, sizeof h, error) == RG_E_PEER);
    CHECK(error ==
          "shaped: rank 1 sent a header with chunks of " + std::to_string(chunk) +
              " bytes, expected a positive multiple of 64: use the same version of this transport on all ranks");
  }
}

// SPDX-License-Identifier: Apache-2.0
//
// How ranks connect: with the run's secret, with addresses of peers, in time; and what a failure leaves.
#include "check/harness/rank_group.hpp"
#include "check/harness/resource_snapshot.hpp"

#include <algorithm>
#include <array>
#include <thread>

#include <fmt/format.h>

namespace regatta::conformance {
namespace {

// Connects two instances, each in a thread. Returns the status and the error text of each.
struct connect_result {
  rg_status status[2];
  std::string text[2];
  std::vector<std::string> macs[2]; // the data of each call of mac()
  void expect(bool success) const {
    for (int r = 0; r < 2; ++r)
      require((status[r] == RG_OK) == success, fmt::format("rank {}: connect() returns status {}, \"{}\"; expected {}",
                                                           r, status[r], text[r], success ? "RG_OK" : "an error"));
  }
};
connect_result try_to_connect(const subject& which, const std::array<mac_plan, 2>& macs, std::uint64_t timeout_ns,
                              bool garble = false) {
  endpoint a(which, 0, 2, 1, macs[0]), b(which, 1, 2, 1, macs[1]);
  std::vector<std::vector<std::uint8_t>> blobs = {a.listen(), b.listen()};
  if (garble)
    for (auto& blob : blobs)
      for (auto& byte : blob) byte ^= 0x5a;
  connect_result o{};
  std::thread other([&] { o.status[1] = b.try_connect(blobs, timeout_ns); });
  o.status[0] = a.try_connect(blobs, timeout_ns);
  other.join();
  o.text[0] = a.last_error();
  o.text[1] = b.last_error();
  o.macs[0] = a.macs();
  o.macs[1] = b.macs();
  return o;
}

const mac_plan another_secret{.secret = "another secret"};

void secret(const subject& which) {
  try_to_connect(which, {}, connect_timeout).expect(true);
  const connect_result unauthenticated = try_to_connect(which, {mac_plan{}, another_secret}, second / 2);
  unauthenticated.expect(false);
  for (int r = 0; r < 2; ++r)
    require(unauthenticated.text[r].find("rank " + std::to_string(1 - r)) != std::string::npos,
            fmt::format("the error text does not name rank {}: \"{}\"", 1 - r, unauthenticated.text[r]));
}

// A MAC over bytes that were used before could be repeated by a process that has recorded the earlier handshake.
void require_fresh(const connect_result& first, const connect_result& next) {
  for (const auto& earlier : first.macs)
    for (const std::string& data : earlier)
      for (const auto& later : next.macs)
        require(std::find(later.begin(), later.end(), data) == later.end(),
                "mac() gets the same data in two handshakes: include a challenge that is new in each");
}

// Each MAC is either sent as a proof or compared with a proof. So whichever of them is wrong, a rank must not connect.
void proofs(const subject& which) {
  const connect_result right = try_to_connect(which, {}, connect_timeout);
  right.expect(true);
  require_fresh(right, try_to_connect(which, {}, connect_timeout));
  for (std::size_t r = 0; r < 2; ++r) {
    require(right.macs[r].size() >= 2,
            fmt::format("rank {} calls mac() {} times; it must compute its own proof, and its peer's to compare", r,
                        right.macs[r].size()));
    for (std::size_t calls = 0; calls < right.macs[r].size(); ++calls) {
      std::array<mac_plan, 2> macs;
      macs[r].right_calls = calls;
      const connect_result wrong = try_to_connect(which, macs, second / 2);
      if (wrong.macs[r].size() <= calls) continue; // this time there was no such call
      require(
          wrong.status[0] != RG_OK || wrong.status[1] != RG_OK,
          fmt::format("both ranks connect although call {} of mac() on rank {} returned wrong bytes: each side must "
                      "check the other's proof",
                      calls + 1, r));
    }
  }
}

void garbled_blobs(const subject& which) {
  try_to_connect(which, {}, second / 2, true).expect(false);
}

// The instances of the first attempt leave what stays for the whole process.
void rejected_connections(const subject& which) {
  const auto reject = [&] { try_to_connect(which, {mac_plan{}, another_secret}, second / 2); };
  reject();
  const resource_snapshot before = resource_snapshot::take();
  reject();
  before.expect_no_leaks();
}

void absent_rank(const subject& which) {
  endpoint a(which, 0, 2, 2), b(which, 1, 2, 2);
  const std::vector<std::vector<std::uint8_t>> blobs = {a.listen(), b.listen()};
  require(a.try_connect(blobs, second / 5) < 0,
          "connect() succeeds although rank 1 does not call it; expected an error at the timeout");
  require(a.last_error().find("rank 1") != std::string::npos,
          "the error text does not name rank 1: \"" + a.last_error() + "\"");
}

// On Linux every address in 127.0.0.0/8 is this machine's.
void several_addresses(const subject& which) {
  subject two = which;
  two.addresses = {"127.0.0.1", "127.0.0.2"};
  run_ranks(two, {.ranks = 3, .lanes = 2}, [](member& self) {
    const memory m = self->allocate(2 * MiB);
    for (std::uint32_t round = 1; round < 3; ++round) {
      const std::uint32_t to = (self->rank() + round) % 3, from = (self->rank() + 3 - round) % 3;
      for (std::uint32_t lane = 0; lane < 2; ++lane) {
        fill(m.data, MiB, 10 * self->rank() + lane);
        const std::uint64_t sent = self->send(to, lane, m, 0, MiB);
        self->finish(self->recv(from, lane, m, MiB, MiB));
        self->finish(sent);
        require(is_filled(m.data + MiB, MiB, 10 * from + lane), "a message arrives changed");
      }
    }
  });
}

void early_end(const subject& which) {
  { endpoint unused(which, 0, 2, 1); }
  endpoint listens(which, 0, 2, 1);
  listens.listen();
}

} // namespace

std::vector<test> connecting_tests() {
  return {
      {"secret", "only ranks that know the run's secret connect; the error text names the peer", secret},
      {"proofs", "each rank checks its peer's proof, which holds for this handshake only", proofs},
      {"blobs", "connect() with invalid blobs ends in an error", garbled_blobs},
      {"absent-rank", "connect() to a rank that never connects ends in an error at the timeout, which names the rank",
       absent_rank},
      {"rejected", "a failed authentication leaves no descriptor, thread or mapping behind", rejected_connections},
      {"rails", "ranks with two addresses (rg_world.addresses) exchange messages", several_addresses},
      {"destroy", "an instance can be destroyed at any stage", early_end},
  };
}

} // namespace regatta::conformance

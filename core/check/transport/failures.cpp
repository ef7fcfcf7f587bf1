// SPDX-License-Identifier: Apache-2.0
//
// Failures end in an error on every rank that is affected, and no rank waits for ever.
#include "check/harness/rank_group.hpp"

#include "base/text.hpp"

#include <csignal>
#include <thread>

#include <unistd.h>

namespace regatta::conformance {
namespace {

// Connects two instances, each in a thread. Returns the status and the error text of each.
struct outcome {
  rg_status status[2];
  std::string text[2];
  void expect(bool met) const {
    for (int r = 0; r < 2; ++r)
      require((status[r] == RG_OK) == met, "rank " + std::to_string(r) + ": connect gives status " +
                                               std::to_string(status[r]) + ", \"" + text[r] + "\"");
  }
};
outcome try_to_meet(const subject& which, const char* secret_of_1, bool garble, std::uint64_t timeout_ns) {
  endpoint a(which, 0, 2, 1), b(which, 1, 2, 1, secret_of_1);
  std::vector<std::vector<std::uint8_t>> blobs = {a.listen(), b.listen()};
  if (garble)
    for (auto& blob : blobs)
      for (auto& byte : blob) byte ^= 0x5a;
  outcome o{};
  std::thread other([&] { o.status[1] = b.try_connect(blobs, timeout_ns); });
  o.status[0] = a.try_connect(blobs, timeout_ns);
  other.join();
  o.text[0] = a.last_error();
  o.text[1] = b.last_error();
  return o;
}

void secret(const subject& which) {
  const outcome good = try_to_meet(which, "secret of the run", false, patience_to_connect);
  good.expect(true);
  const outcome strangers = try_to_meet(which, "another secret", false, second / 2);
  strangers.expect(false);
  for (int r = 0; r < 2; ++r)
    require(strangers.text[r].find("rank " + std::to_string(1 - r)) != std::string::npos,
            "the message does not name the rank: \"" + strangers.text[r] + "\"");
}

void garbled_blobs(const subject& which) {
  const outcome o = try_to_meet(which, "secret of the run", true, second / 2);
  o.expect(false);
}

void absent_rank(const subject& which) {
  endpoint a(which, 0, 2, 2), b(which, 1, 2, 2);
  const std::vector<std::vector<std::uint8_t>> blobs = {a.listen(), b.listen()};
  require(a.try_connect(blobs, second / 5) < 0, "connect succeeds");
  require(a.last_error().find("rank 1") != std::string::npos,
          "the message does not name the rank: \"" + a.last_error() + "\"");
}

void early_end(const subject& which) {
  { endpoint unused(which, 0, 2, 1); }
  endpoint listens(which, 0, 2, 1);
  listens.listen();
}

void refusals(const subject& which) {
  run_ranks(which, {}, [](member& self) {
    const memory m = self->allocate(64);
    const memory ghost{m.region, nullptr, 64};
    const std::uint32_t peer = 1 - self->rank();
    std::uint64_t cookie = 0;
    require(self->try_send(peer, 0, ghost, 0, 64, cookie) < 0, "a ghost is sent");
    require(self->try_recv(peer, 0, ghost, 0, 64, cookie) < 0, "a ghost receives");
    require(self->try_send(7, 0, m, 0, 64, cookie) < 0, "a rank that is none is sent to");
    require(self->try_send(peer, 9, m, 0, 64, cookie) < 0, "a lane that is none is sent on");
    require(!self->last_error().empty(), "and no word is said");
    const std::uint64_t sent = self->send(peer, 0, m, 0, 32);
    require(self->finish(self->recv(peer, 0, m, 32, 32)) == 32, "another length");
    self->finish(sent);
  });
}

void too_long(const subject& which) {
  const std::uint32_t caps = caps_of(which).flags;
  if (caps & RG_CAP_EXACT_SIZE) throw skipped("no message is of another length than its receive (RG_CAP_EXACT_SIZE)");
  run_ranks(which, {.close = false}, [&](member& self) {
    const memory m = self->allocate(64 * MiB);
    if (self->rank() == 0) { // more than any medium buffers before it is received
      const std::uint64_t sent = self->send(1, 0, m, 0, 64 * MiB);
      if (caps & RG_CAP_LONG_FAILS_SENDER)
        require(self->wait(sent).status < 0, "the send succeeds (RG_CAP_LONG_FAILS_SENDER)");
    } else {
      fill(m.data + 1000, 4000, 1);
      require(self->wait(self->recv(0, 0, m, 0, 1000)).status < 0, "the receive succeeds");
      require(is_filled(m.data + 1000, 4000, 1), "and writes behind its buffer");
      require(!self->last_error().empty(), "and no word is said");
    }
    self.meet_polling(); // the sender's status is not checked, but the transport may need its polls
  });
}

void cancel(const subject& which) {
  run_ranks(which, {.ranks = 3, .lanes = 2, .close = false}, [](member& self) {
    const memory m = self->allocate(32 * MiB), other = self->allocate(64);
    if (self->rank() == 0) {
      const bool all = self->caps().flags & RG_CAP_CANCEL_ALL;
      const std::uint64_t from_2 = self->recv(2, 0, other, 0, 64);
      const std::uint64_t doomed[] = {self->recv(1, 0, m, 0, 1000), self->recv(1, 0, m, 1000, 1000),
                                      self->recv(1, 1, m, 2000, 1000), self->send(1, 0, m, 0, 32 * MiB),
                                      self->send(1, 1, m, 0, 100)};
      self->poll(0);
      self->cancel(1);
      for (const std::uint64_t c : doomed) {
        const rg_status s = self->wait(c).status;
        require(s == RG_E_CANCELLED || (c == doomed[4] && s == RG_OK), // it may have completed before the cancel
                "ends with status " + std::to_string(s));
      }
      std::uint64_t cookie = 0;
      require(self->try_send(1, 0, m, 0, 8, cookie) < 0, "a cancelled peer can be sent to");
      self.meet();
      if (!all) self->finish(from_2);
    } else {
      self.meet();
      if (self->rank() == 2 && !(self->caps().flags & RG_CAP_CANCEL_ALL)) self->finish(self->send(0, 0, other, 0, 64));
    }
    self.meet();
  });
}

void killed_peer(const subject& which) {
  const auto wrong = run(which, {.ranks = 3, .lanes = 2, .kind = as::processes, .close = false}, [](member& self) {
    const memory m = self->allocate(32 * MiB), ready = self->allocate(8);
    if (self->rank() == 2) {
      // It sends two messages that arrive, begins one that will not complete, and receives one. Then it dies.
      const std::uint64_t sends[] = {self->send(0, 1, m, 0, 8), self->send(1, 1, m, 0, 8)};
      self->finish(sends);
      self->send(0, 0, m, 0, 32 * MiB);
      self->poll(0);
      self->finish(self->recv(0, 1, ready, 0, 8));
      kill(getpid(), SIGKILL);
    }
    const std::uint32_t peer = 1 - self->rank();
    self->finish(self->recv(2, 1, ready, 0, 8));
    const std::uint64_t doomed[] = {self->recv(2, 1, m, 0, 8), self->send(2, 0, m, 0, 32 * MiB)};
    const std::uint64_t farewell = self->rank() == 0 ? self->send(2, 1, ready, 0, 8) : 0;
    for (const std::uint64_t c : doomed) {
      const rg_status s = self->wait(c, patience_with_peers).status;
      require(s == RG_E_PEER, "ends with status " + std::to_string(s));
    }
    if (farewell) self->wait(farewell, patience_with_peers);
    require(self->last_error().find("rank 2") != std::string::npos, "the message does not name the rank");
    for (std::uint64_t k = 0; k < 20; ++k) {
      fill(m.data, MiB, self->rank() + k);
      const std::uint64_t sent = self->send(peer, 0, m, 0, MiB);
      self->finish(self->recv(peer, 0, m, MiB, MiB));
      self->finish(sent);
      require(is_filled(m.data + MiB, MiB, peer + k), "the others' messages arrive changed");
    }
    std::uint64_t cookie = 0;
    require(self->try_send(2, 0, m, 0, 8, cookie) < 0, "a dead peer can be sent to");
    self->close();
  });
  if (wrong != std::vector<std::string>{"rank 2: signal 9"}) throw failed(join(wrong, "; "));
}

void drained_close(const subject& which) {
  for (const as kind : {as::threads, as::processes})
    run_ranks(which, {.ranks = 2, .lanes = 3, .kind = kind, .close = false}, [](member& self) {
      constexpr std::uint64_t bytes = 100'000, messages = 20;
      const memory m = self->allocate(bytes * messages * self->lanes());
      std::vector<std::uint64_t> all;
      if (self->rank() == 0) fill(m.data, m.bytes, 4);
      for (std::uint64_t k = 0; k < messages * self->lanes(); ++k) {
        const auto lane = static_cast<std::uint32_t>(k % self->lanes());
        all.push_back(self->rank() == 0 ? self->send(1, lane, m, k * bytes, bytes)
                                        : self->recv(0, lane, m, k * bytes, bytes));
      }
      self->finish(all);
      self->close();
      if (self->rank() == 1) require(is_filled(m.data, m.bytes, 4), "arrives changed");
    });
}

// One rank closes while the other waits for a message from it.
void left_peer(const subject& which) {
  run_ranks(which, {.close = false}, [](member& self) {
    const memory m = self->allocate(64);
    if (self->rank() == 0) {
      self->finish(self->send(1, 0, m, 0, 64));
      self->close();
    } else {
      self->finish(self->recv(0, 0, m, 0, 64));
      require(self->wait(self->recv(0, 0, m, 0, 64), patience_with_peers).status == RG_E_PEER,
              "a receive from nobody succeeds");
      self->close();
    }
  });
}

} // namespace

const std::vector<test>& failure_tests() {
  static const std::vector<test> all = {
      {"secret", "ranks that know the secret meet; others do not", secret},
      {"blobs", "blobs that say nothing end in an error", garbled_blobs},
      {"absent-rank", "who waits for a rank that does not come is told so at the deadline", absent_rank},
      {"destroy", "instances may be destroyed at any stage", early_end},
      {"refusals", "what cannot be transferred is refused, and nothing else suffers", refusals, false, true},
      {"too-long", "a message longer than its receive ends the receive with an error (and, where it says so, the send)",
       too_long},
      {"cancel", "cancel ends every operation with that peer, and with no other", cancel},
      {"killed-peer", "a killed peer ends what was begun with it; the others go on", killed_peer},
      {"close", "close returns when everything sent has arrived, and loses none of it", drained_close, false, true},
      {"left-peer", "a peer that has left ends what waits for it", left_peer},
  };
  return all;
}

} // namespace regatta::conformance

// SPDX-License-Identifier: Apache-2.0
//
// Failures end in an error on every rank that is affected, and no rank waits for ever.
#include "check/harness/rank_group.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <csignal>

#include <fmt/format.h>
#include <regatta/ext/cancel.h>
#include <unistd.h>

namespace regatta::conformance {
namespace {

constexpr const char* no_error_text = "a call returns an error without a text; call rg_host.fail() first";

void refusals(const subject& which) {
  run_ranks(which, {}, [](member& self) {
    const memory m = self->allocate(64);
    const memory ghost{m.region, nullptr, 64};
    const std::uint32_t peer = 1 - self->rank();
    std::uint64_t cookie = 0;
    require(self->try_send(peer, 0, ghost, 0, 64, cookie) < 0, "send() accepts a ghost (a buffer without address)");
    require(self->try_recv(peer, 0, ghost, 0, 64, cookie) < 0, "recv() accepts a ghost (a buffer without address)");
    require(self->try_send(7, 0, m, 0, 64, cookie) < 0, "send() accepts rank 7 of a world of 2 ranks");
    require(self->try_send(peer, 9, m, 0, 64, cookie) < 0, "send() accepts lane 9 of 1 lane");
    require(!self->last_error().empty(), no_error_text);
    const std::uint64_t sent = self->send(peer, 0, m, 0, 32);
    require(self->finish(self->recv(peer, 0, m, 32, 32)) == 32,
            "after rejected calls, a receive completes with another length than its message's");
    self->finish(sent);
  });
}

void too_long(const subject& which) {
  const std::uint32_t caps = caps_of(which).flags;
  if (caps & RG_CAP_EXACT_SIZE) throw skipped("it requires messages as long as their receives (RG_CAP_EXACT_SIZE)");
  run_ranks(which, {.close = false}, [&](member& self) {
    const memory m = self->allocate(64 * MiB);
    if (self->rank() == 0) { // more than any medium buffers before it is received
      const std::uint64_t sent = self->send(1, 0, m, 0, 64 * MiB);
      if (caps & RG_CAP_LONG_FAILS_SENDER)
        require(self->wait(sent).status < 0,
                "the send of a message longer than its receive succeeds; RG_CAP_LONG_FAILS_SENDER promises an error");
    } else {
      fill(m.data + 1000, 4000, 1);
      require(self->wait(self->recv(0, 0, m, 0, 1000)).status < 0,
              "a receive shorter than its message succeeds; expected an error");
      require(is_filled(m.data + 1000, 4000, 1), "a receive shorter than its message writes behind its buffer");
      require(!self->last_error().empty(), no_error_text);
    }
    self.barrier_polling(); // the sender's status is not checked, but the transport may need its polls
  });
}

void cancel(const subject& which) {
  run_ranks(which, {.ranks = 3, .lanes = 2, .close = false}, [](member& self) {
    const memory m = self->allocate(32 * MiB), other = self->allocate(64);
    if (self->rank() == 0) {
      const bool all = self->caps().flags & RG_CAP_CANCEL_ALL;
      const std::uint64_t from_2 = self->recv(2, 0, other, 0, 64);
      const std::uint64_t pending[] = {self->recv(1, 0, m, 0, 1000), self->recv(1, 0, m, 1000, 1000),
                                       self->recv(1, 1, m, 2000, 1000), self->send(1, 0, m, 0, 32 * MiB),
                                       self->send(1, 1, m, 0, 100)};
      self->poll(0);
      self->cancel(1);
      for (const std::uint64_t c : pending) {
        const rg_status s = self->wait(c).status;
        require(s == RG_E_CANCELLED || (c == pending[4] && s == RG_OK), // it may have completed before the cancel
                "an operation with a cancelled peer ends with status " + std::to_string(s) +
                    "; expected RG_E_CANCELLED");
      }
      std::uint64_t cookie = 0;
      require(self->try_send(1, 0, m, 0, 8, cookie) < 0, "send() to a cancelled peer succeeds; expected an error");
      self.barrier();
      if (!all) self->finish(from_2);
    } else {
      self.barrier();
      if (self->rank() == 2 && !(self->caps().flags & RG_CAP_CANCEL_ALL)) self->finish(self->send(0, 0, other, 0, 64));
    }
    self.barrier();
  });
}

rg_status cancel_one(member& self, const rg_cancel* cancels, std::uint64_t cookie) {
  self->check(cancels->cancel(self->self(), cookie), "cancel of regatta.cancel/1");
  return self->wait(cookie).status;
}

// Three receives are posted, and before a message is sent the second is cancelled, or the first if the transport has no
// room for more. The two others take the two messages.
void cancelled_receive(member& self, const rg_cancel* cancels) {
  constexpr std::uint64_t bytes = 1000;
  const memory m = self->allocate(3 * bytes);
  if (self->rank() == 0) {
    fill(m.data, 3 * bytes, 9);
    std::vector<std::byte> before(m.data, m.data + 3 * bytes);
    std::vector<std::uint64_t> posted;
    std::uint64_t cookie = 0;
    rg_status accepted = RG_OK;
    while (posted.size() < 3 && (accepted = self->try_recv(1, 0, m, posted.size() * bytes, bytes, cookie)) == RG_OK)
      posted.push_back(cookie);
    if (accepted != RG_AGAIN) self->check(accepted, "recv");
    require(!posted.empty(), "recv() returns RG_AGAIN although no receive is outstanding");
    const std::size_t victim = std::min<std::size_t>(1, posted.size() - 1);
    self->poll(0);
    const rg_status s = cancel_one(self, cancels, posted[victim]);
    require(s == RG_E_CANCELLED,
            fmt::format("a cancelled receive without a message ends with status {}; expected RG_E_CANCELLED", s));
    for (std::size_t i = posted.size(); i < 3; ++i) posted.push_back(self->recv(1, 0, m, i * bytes, bytes));
    self.barrier();
    std::uint64_t message = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      if (i == victim) continue;
      self->finish(posted[i]);
      require(is_filled(m.data + i * bytes, bytes, ++message),
              "the receives before and behind a cancelled one do not get the next two messages");
    }
    require(std::equal(m.data + victim * bytes, m.data + (victim + 1) * bytes, before.data() + victim * bytes),
            "a cancelled receive writes its buffer");
    self->check(cancels->cancel(self->self(), posted[victim]), "cancel of an operation that has ended");
  } else {
    self.barrier();
    for (const std::uint64_t k : {1, 2}) {
      fill(m.data, bytes, k);
      self->finish(self->send(0, 0, m, 0, bytes));
    }
  }
  self.barrier_polling(); // a second completion of the cancelled receive would show here
}

// The second of three sends is cancelled. The first is larger than any medium buffers, so it is on its way. If the
// transport has no room for the second one beside it, there is nothing to cancel, and all three arrive.
void cancelled_send(member& self, const rg_cancel* cancels) {
  const memory large = self->allocate(32 * MiB), m = self->allocate(3000);
  if (self->rank() == 0) {
    fill(m.data, 1000, 1);
    fill(m.data + 1000, 1000, 2);
    const std::uint64_t first = self->send(1, 0, large, 0, 32 * MiB);
    std::uint64_t second = 0;
    const rg_status accepted = self->try_send(1, 0, m, 0, 1000, second);
    if (accepted == RG_AGAIN)
      second = self->send(1, 0, m, 0, 1000);
    else
      self->check(accepted, "send");
    const std::uint64_t third = self->send(1, 0, m, 1000, 1000);
    self->poll(0);
    if (accepted == RG_OK) self->check(cancels->cancel(self->self(), second), "cancel of regatta.cancel/1");
    self.barrier();
    self->finish(first);
    self->finish(third);
    const rg_status s = self->wait(second).status;
    require(s == RG_OK || s == RG_E_CANCELLED,
            fmt::format("a cancelled send ends with status {}; expected RG_OK or RG_E_CANCELLED", s));
    m.data[2000] = std::byte{s == RG_OK};
    self->finish(self->send(1, 0, m, 2000, 1));
  } else {
    self.barrier();
    self->finish(self->recv(0, 0, large, 0, 32 * MiB));
    self->finish(self->recv(0, 0, m, 0, 1000));
    const bool sent = is_filled(m.data, 1000, 1);
    if (sent) self->finish(self->recv(0, 0, m, 0, 1000));
    require(is_filled(m.data, 1000, 2), "the send behind a cancelled one does not arrive unchanged");
    self->finish(self->recv(0, 0, m, 2000, 1));
    require(sent == (m.data[2000] == std::byte{1}),
            "a send that ended with RG_E_CANCELLED has arrived, or one that ended with RG_OK has not");
  }
  self.barrier_polling();
}

void cancel_operation(const subject& which) {
  if (!endpoint(which, 0, 2, 1).extension<rg_cancel>(RG_EXT_CANCEL))
    throw skipped("it cannot cancel one operation (" RG_EXT_CANCEL ")");
  run_ranks(which, {}, [](member& self) {
    const auto* cancels = self->extension<rg_cancel>(RG_EXT_CANCEL);
    cancelled_receive(self, cancels);
    cancelled_send(self, cancels);
    const memory m = self->allocate(64 * KiB);
    self->exchange(1 - self->rank(), m, 32 * KiB);
  });
}

void killed_peer(const subject& which) {
  const auto wrong =
      errors_of_ranks(which, {.ranks = 3, .lanes = 2, .kind = ranks_as::processes, .close = false}, [](member& self) {
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
        self->finish(self->recv(2, 1, ready, 0, 8));
        const std::uint64_t pending[] = {self->recv(2, 1, m, 0, 8), self->send(2, 0, m, 0, 32 * MiB)};
        const std::uint64_t last_send = self->rank() == 0 ? self->send(2, 1, ready, 0, 8) : 0;
        for (const std::uint64_t c : pending) {
          const rg_status s = self->wait(c, peer_failure_timeout).status;
          require(s == RG_E_PEER,
                  "an operation with a killed peer ends with status " + std::to_string(s) + "; expected RG_E_PEER");
        }
        if (last_send) self->wait(last_send, peer_failure_timeout);
        require(self->last_error().find("rank 2") != std::string::npos,
                "the error text does not name rank 2: \"" + self->last_error() + "\"");
        for (std::uint64_t round = 0; round < 20; ++round) self->exchange(1 - self->rank(), m, MiB, round);
        std::uint64_t cookie = 0;
        require(self->try_send(2, 0, m, 0, 8, cookie) < 0, "send() to a killed peer succeeds; expected an error");
        self->close();
      });
  if (wrong != std::vector<std::string>{"rank 2: signal 9"}) throw failed(join(wrong, "; "));
}

void drained_close(const subject& which) {
  for (const ranks_as kind : {ranks_as::threads, ranks_as::processes})
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
      if (self->rank() == 1)
        require(is_filled(m.data, m.bytes, 4), "received bytes differ from the sent ones after close()");
    });
}

// close() with a message on its way to a rank that does not poll. The hang watch ends a close() that ignores its
// deadline.
void late_peer(const subject& which) {
  run_ranks(which, {.close = false}, [](member& self) {
    const memory m = self->allocate(64);
    self.barrier();
    if (self->rank() == 0) {
      fill(m.data, 64, 5);
      const std::uint64_t sent = self->send(1, 0, m, 0, 64);
      for (int i = 0; i < 10 && !self->completed(sent); ++i) self->poll(second / 100);
      if (!self->completed(sent)) { // it completes only with its receive: close() requires that it has ended
        self->cancel(1);
        self->wait(sent);
      }
      const rg_status s = self->try_close(second / 2);
      require(s == RG_OK || s == RG_TIMEOUT,
              fmt::format("close() with a peer that does not poll returns status {}; expected RG_TIMEOUT at its "
                          "deadline, or RG_OK if all messages have arrived",
                          s));
    }
    self.barrier();
  });
}

// One rank closes while the other waits for a message from it. Both instances live until both have closed, so that
// close() itself must end the connection.
void closed_peer(const subject& which) {
  run_ranks(which, {.close = false}, [](member& self) {
    const memory m = self->allocate(64);
    if (self->rank() == 0) {
      self->finish(self->send(1, 0, m, 0, 64));
      self->close();
    } else {
      self->finish(self->recv(0, 0, m, 0, 64));
      require(self->wait(self->recv(0, 0, m, 0, 64), connect_timeout).status == RG_E_PEER,
              "a receive from a peer that has closed does not end with RG_E_PEER");
      self->close();
    }
    self.barrier();
  });
}

} // namespace

std::vector<test> failure_tests() {
  return {
      {"refusals", "ghosts, and ranks and lanes that do not exist, are rejected with a text; other transfers work",
       refusals, false, true},
      {"too-long", "a message longer than its receive fails the receive (and with RG_CAP_LONG_FAILS_SENDER the send)",
       too_long},
      {"cancel", "cancel() ends all operations with that peer, and no others", cancel},
      {"cancel-one", "regatta.cancel/1 ends one operation, once, and no others", cancel_operation, false, true},
      {"killed-peer", "operations with a killed peer end with RG_E_PEER; the other ranks still exchange messages",
       killed_peer},
      {"close", "close() returns once everything sent has arrived", drained_close, false, true},
      {"close-deadline", "close() returns by its deadline although a peer does not poll", late_peer},
      {"left-peer", "a receive from a peer that has closed ends with RG_E_PEER", closed_peer},
  };
}

} // namespace regatta::conformance

// SPDX-License-Identifier: Apache-2.0
//
// Tests of puts and gets, for transports that have regatta.one_sided/1.
#include "check/harness/rank_group.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

namespace regatta::conformance {
namespace {

using region_key = endpoint::message;

void require_one_sided(const subject& which) {
  if (!endpoint(which, 0, 2, 1).extension<rg_one_sided>(RG_EXT_ONE_SIDED))
    throw skipped("it has no put and get (" RG_EXT_ONE_SIDED ")");
}

// Sends the key of `mine` to all other ranks and returns the keys of all ranks' regions, by rank. All ranks call it.
std::vector<region_key> exchange_keys(member& self, const memory& mine) {
  std::vector<region_key> keys(self->ranks());
  region_key& own = keys[self->rank()] = self->expose(mine);
  const std::size_t bytes = own.size();
  const memory m = self->allocate(bytes * (self->ranks() + 1));
  std::copy(own.begin(), own.end(), reinterpret_cast<std::uint8_t*>(m.data));
  std::vector<std::uint64_t> pending;
  for (std::uint32_t r = 0; r < self->ranks(); ++r) {
    if (r == self->rank()) continue;
    pending.push_back(self->send(r, 0, m, 0, bytes));
    pending.push_back(self->recv(r, 0, m, (r + 1) * bytes, bytes));
  }
  self->finish(pending);
  const auto* all = reinterpret_cast<const std::uint8_t*>(m.data);
  for (std::uint32_t r = 0; r < self->ranks(); ++r)
    if (r != self->rank()) keys[r].assign(all + (r + 1) * bytes, all + (r + 2) * bytes);
  return keys;
}

void require_notification(const notification& got, std::uint64_t value, std::uint64_t bytes) {
  require(got.value == value && got.bytes == bytes,
          fmt::format("poll() reports a notification {:#x} of {} bytes; expected {:#x} of {} bytes", got.value,
                      got.bytes, value, bytes));
}

// Waits until all ranks are here; a notification or completion that comes too often shows here.
void expect_no_more(member& self) {
  self.barrier_polling();
  self->poll(0);
  require(self->notifications() == 0, "poll() reports a notification of no put, or one twice");
}

// In both directions at once, one size after the other, at offsets that no word is aligned to.
void put_and_get(const subject& which) {
  require_one_sided(which);
  run_ranks(which, {}, [](member& self) {
    constexpr std::uint64_t largest = 4 * MiB + 3, local = 5, there = 3;
    const std::uint32_t peer = 1 - self->rank();
    const memory mine = self->allocate(largest + 64), m = self->allocate(largest + 64);
    const std::vector<region_key> keys = exchange_keys(self, mine);
    for (const std::uint64_t bytes : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{7}, std::uint64_t{0},
                                      std::uint64_t{64}, 4 * KiB, 64 * KiB + 1, MiB, largest}) {
      const std::string what = fmt::format(" of {} bytes ", bytes);
      fill(mine.data, mine.bytes, 1);
      std::vector<std::byte> before(mine.data, mine.data + mine.bytes);
      self.barrier();
      fill(m.data + local, bytes, 10 + self->rank());
      const std::uint64_t put = self->put({peer, keys[peer], there}, m, local, bytes, ~bytes);
      require_notification(self->wait_for_notification(), ~bytes, bytes);
      require(is_filled(mine.data + there, bytes, 10 + peer),
              "after its notification, a put" + what + "has not arrived");
      require(std::equal(before.begin(), before.begin() + there, mine.data) &&
                  std::equal(before.begin() + static_cast<std::ptrdiff_t>(there + bytes), before.end(),
                             mine.data + there + bytes),
              "a put" + what + "writes beside its bytes");
      self->finish(put);

      fill(m.data, m.bytes, 2);
      before.assign(m.data, m.data + m.bytes);
      self->finish(self->get({peer, keys[peer], there}, m, local, bytes));
      require(is_filled(m.data + local, bytes, 10 + self->rank()),
              "a get" + what + "returns other bytes than the put wrote");
      require(std::equal(before.begin(), before.begin() + local, m.data) &&
                  std::equal(before.begin() + static_cast<std::ptrdiff_t>(local + bytes), before.end(),
                             m.data + local + bytes),
              "a get" + what + "writes beside its bytes");
      self.barrier_polling();
    }
    self->finish(self->put({peer, keys[peer], 0}, m, 0, 100)); // without a notification
    expect_no_more(self);
  });
}

// Rank 0 polls once, then rank 1 does, and so on: a notification that is sent in an earlier poll than the bytes shows.
void notification_in_turns(member& self) {
  constexpr std::uint64_t bytes = 4 * MiB;
  const memory mine = self->allocate(bytes), m = self->allocate(bytes);
  const std::vector<region_key> keys = exchange_keys(self, mine);
  fill(m.data, bytes, 7);
  self.barrier_polling();
  const std::uint64_t put = self->rank() == 0 ? self->put({1, keys[1]}, m, 0, bytes, 7) : 0;
  const auto check = [&] {
    require_notification(self->wait_for_notification(), 7, bytes);
    require(is_filled(mine.data, bytes, 7),
            "poll() reports the notification of a put of 4 MiB before all of its bytes");
  };
  bool checked = self->rank() == 0;
  for (int turn = 0; turn < 40; ++turn) {
    if (self->rank() == 0) self->poll(0);
    self.barrier();
    if (self->rank() == 1) self->poll(0);
    if (!checked && self->notifications() > 0) {
      check();
      checked = true;
    }
    self.barrier();
  }
  if (!checked) check();
  if (self->rank() == 0) self->finish(put);
  expect_no_more(self);
}

// Every rank has hundreds of puts and gets of all sizes on their way to both others, and an unreceived message before
// them. Each notification is checked at once: the bytes of that put must be there.
void notifications(const subject& which) {
  require_one_sided(which);
  run_ranks(which, {}, notification_in_turns);
  run_ranks(which, {.ranks = 3}, [](member& self) {
    constexpr std::uint64_t puts = 200, room = 300 * KiB;
    const auto size_of = [](std::uint64_t k) { return k % 10 == 9 ? room - k : k * k % 5000; };
    const std::uint32_t self_rank = self->rank();
    // In each region every put of every rank has bytes of its own; the large puts are behind the small ones.
    constexpr std::uint64_t most_small = 5000, large_from = 3 * puts * most_small;
    const auto where = [](std::uint32_t from, std::uint64_t k) {
      return k % 10 == 9 ? large_from + (from * puts / 10 + k / 10) * room : (from * puts + k) * most_small;
    };
    const memory mine = self->allocate(large_from + 3 * puts / 10 * room), source = self->allocate(room + puts);
    const std::vector<region_key> keys = exchange_keys(self, mine);
    const memory blocked = self->allocate(2 * MiB), back = self->allocate(puts * 8);
    fill(source.data, source.bytes, 100 + self_rank);
    fill(blocked.data, MiB, self_rank);
    self.barrier_polling();

    std::vector<std::uint64_t> pending;
    const std::uint32_t next = (self_rank + 1) % 3, last = (self_rank + 2) % 3;
    pending.push_back(self->send(next, 0, blocked, 0, MiB));
    for (std::uint64_t k = 0; k < puts; ++k)
      for (const std::uint32_t peer : {next, last}) {
        const std::uint64_t value = (std::uint64_t{self_rank} << 32) + k / 2 + 1; // two puts in a row have the same
        pending.push_back(self->put({peer, keys[peer], where(self_rank, k)}, source, k % 8 * 8, size_of(k), value));
        if (k % 4 == 0)
          pending.push_back(
              self->get({peer, keys[peer], where(self_rank, k)}, back, k * 8 + (peer == next ? 0 : 4), 4));
      }
    std::vector<std::byte> expected(room + puts);
    std::uint64_t seen[3] = {};
    for (std::uint64_t n = 0; n < 2 * puts; ++n) {
      const notification got = self->wait_for_notification();
      const auto from = static_cast<std::uint32_t>(got.value >> 32);
      require(from < 3 && from != self_rank && seen[from] < puts, "poll() reports a notification of no put");
      const std::uint64_t k = seen[from]++;
      require_notification(got, (std::uint64_t{from} << 32) + k / 2 + 1, size_of(k));
      fill(expected.data(), expected.size(), 100 + from);
      require(std::equal(mine.data + where(from, k), mine.data + where(from, k) + size_of(k),
                         expected.begin() + static_cast<std::ptrdiff_t>(k % 8 * 8)),
              fmt::format("poll() reports the notification of a put of {} bytes before all of its bytes", size_of(k)));
    }
    pending.push_back(self->recv(last, 0, blocked, MiB, MiB));
    self->finish(pending);
    require(is_filled(blocked.data + MiB, MiB, last), "a message beside puts arrives changed");
    expect_no_more(self);
  });
}

// Rank 0 begins as many puts as the transport accepts while rank 1 does not poll, and then the rest.
void notifications_without_poll(const subject& which) {
  require_one_sided(which);
  run_ranks(which, {}, [](member& self) {
    constexpr std::uint64_t puts = 20'000;
    const memory mine = self->allocate(8 * puts), m = self->allocate(8 * puts);
    const std::vector<region_key> keys = exchange_keys(self, mine);
    self.barrier_polling();
    std::vector<std::uint64_t> pending;
    if (self->rank() == 0) {
      fill(m.data, m.bytes, 6);
      for (rg_status status = RG_OK; pending.size() < puts && status != RG_AGAIN;) { // until there is no room
        const std::uint64_t k = pending.size();
        std::uint64_t cookie = 0;
        status = self->try_put({1, keys[1], 8 * k}, m, 8 * k, 8, k + 1, cookie);
        if (status != RG_AGAIN) self->check(status, "put");
        if (status == RG_OK) pending.push_back(cookie);
      }
      self->poll(0);
    }
    self.barrier();
    if (self->rank() == 0)
      for (std::uint64_t k = pending.size(); k < puts; ++k)
        pending.push_back(self->put({1, keys[1], 8 * k}, m, 8 * k, 8, k + 1));
    else
      for (std::uint64_t k = 0; k < puts; ++k) require_notification(self->wait_for_notification(), k + 1, 8);
    self->finish(pending);
    if (self->rank() == 1) require(is_filled(mine.data, mine.bytes, 6), "puts of 8 bytes do not arrive unchanged");
    expect_no_more(self);
  });
}

// Rank 0 puts, then rank 2 gets the same bytes of rank 1, or rank 1 writes them itself.
void get_after_put(const subject& which) {
  require_one_sided(which);
  run_ranks(which, {.ranks = 3}, [](member& self) {
    constexpr std::uint64_t bytes = 700'000;
    const memory mine = self->allocate(bytes), m = self->allocate(bytes);
    const std::vector<region_key> keys = exchange_keys(self, mine);
    for (std::uint64_t round = 0; round < 20; ++round) {
      const std::uint64_t size = round % 2 ? bytes : 40;
      if (self->rank() == 0 && round % 4 < 2) {
        fill(m.data, size, round);
        self->finish(self->put({1, keys[1]}, m, 0, size));
      }
      if (self->rank() == 1 && round % 4 >= 2) fill(mine.data, size, round);
      self.barrier_polling();
      if (self->rank() != 1) {
        self->finish(self->get({1, keys[1]}, m, 0, size));
        require(is_filled(m.data, size, round),
                round % 4 < 2 ? "a get reads other bytes than a put that has completed wrote"
                              : "a get reads other bytes than the owner of the region wrote before it");
      }
      self.barrier_polling();
    }
    expect_no_more(self);
  });
}

// Begins a put or get that must fail. Returns whether it was refused, or completed, with RG_E_OPERATION.
bool fails_to_transfer(member& self, bool put, const remote& there, const memory& m, std::uint64_t bytes) {
  std::uint64_t cookie = 0;
  rg_status s;
  while ((s = put ? self->try_put(there, m, 0, bytes, 77, cookie) : self->try_get(there, m, 0, bytes, cookie)) ==
         RG_AGAIN)
    self->poll(second / 1000);
  return (s == RG_OK ? self->wait(cookie).status : s) == RG_E_OPERATION;
}

void refused_transfers(const subject& which) {
  require_one_sided(which);
  run_ranks(which, {.ranks = 3}, [](member& self) {
    constexpr std::uint64_t bytes = 5000;
    const std::uint32_t peer = (self->rank() + 1) % 3, other = (self->rank() + 2) % 3;
    const memory removed = self->allocate(bytes), mine = self->allocate(bytes), m = self->allocate(2 * bytes);
    const std::vector<region_key> old = exchange_keys(self, removed), keys = exchange_keys(self, mine);
    self.barrier_polling();
    self->remove(removed);
    fill(mine.data, bytes, 1);
    self.barrier_polling();
    region_key inverted = keys[peer];
    for (auto& b : inverted) b = static_cast<std::uint8_t>(~b);
    for (const bool put : {true, false}) {
      const std::string what = put ? "a put " : "a get ";
      fill(m.data, m.bytes, 2);
      const std::pair<std::uint64_t, std::uint64_t> ranges[] = {{0, mine.room + 1}, {mine.room - 1, 2},
                                                                {mine.room, 1},     {mine.room + 1, 0},
                                                                {1 << 20, 8},       {UINT64_MAX - 3, 8}};
      for (const auto& [offset, size] : ranges)
        require(fails_to_transfer(self, put, {peer, keys[peer], offset}, m, size),
                fmt::format("{}of {} bytes at offset {} of a region of {} bytes does not fail with RG_E_OPERATION",
                            what, size, offset, mine.room));
      require(fails_to_transfer(self, put, {peer, inverted}, m, 8),
              what + "with a key of no region does not fail with RG_E_OPERATION");
      require(fails_to_transfer(self, put, {peer, keys[other]}, m, 8),
              what + "with a key of another rank does not fail with RG_E_OPERATION");
      require(fails_to_transfer(self, put, {peer, old[peer]}, m, 8),
              what + "with the key of a removed region does not fail with RG_E_OPERATION");
      require(is_filled(m.data, m.bytes, 2), what + "that fails writes local bytes");
    }
    expect_no_more(self);
    require(is_filled(mine.data, bytes, 1), "a put that fails writes to the peer's region");
    self.barrier();
    self->finish(self->put({peer, keys[peer]}, m, 0, bytes, 5));
    require_notification(self->wait_for_notification(), 5, bytes);
    require(is_filled(mine.data, bytes, 2), "after rejected puts, a put does not arrive unchanged");
    expect_no_more(self);
  });
}

// Rank 0 gives rank 1 up in the middle of puts and gets.
void cancelled_owner(const subject& which) {
  require_one_sided(which);
  run_ranks(which, {.ranks = 3, .close = false}, [](member& self) {
    constexpr std::uint64_t bytes = 4 * MiB;
    const memory mine = self->allocate(bytes), m = self->allocate(bytes);
    const std::vector<region_key> keys = exchange_keys(self, mine);
    self.barrier_polling();
    if (self->rank() == 0) {
      std::vector<std::uint64_t> pending;
      for (int i = 0; i < 8; ++i) {
        pending.push_back(self->put({1, keys[1]}, m, 0, bytes));
        pending.push_back(self->get({1, keys[1]}, mine, 0, bytes));
      }
      self->poll(0);
      self->cancel(1);
      for (const std::uint64_t c : pending) {
        const rg_status s = self->wait(c).status;
        require(s == RG_E_CANCELLED || s == RG_OK, // it may have completed before the cancel
                fmt::format("a put or get with a cancelled peer ends with status {}; expected RG_E_CANCELLED", s));
      }
      std::uint64_t cookie = 0;
      require(self->try_put({1, keys[1]}, m, 0, 8, 0, cookie) < 0,
              "put() to a cancelled peer succeeds; expected an error");
      require(self->try_get({1, keys[1]}, m, 0, 8, cookie) < 0,
              "get() from a cancelled peer succeeds; expected an error");
      if (!(self->caps().flags & RG_CAP_CANCEL_ALL)) {
        fill(m.data, 1000, 8);
        self->finish(self->put({2, keys[2]}, m, 0, 1000, 8));
      }
    } else if (self->rank() == 2 && !(self->caps().flags & RG_CAP_CANCEL_ALL)) {
      require_notification(self->wait_for_notification(), 8, 1000);
      require(is_filled(mine.data, 1000, 8), "after a cancel of another rank, a put does not arrive unchanged");
    }
    expect_no_more(self);
  });
}

// Rank 2 puts and dies once the put has completed. Its peers learn of the put, and then their puts and gets fail.
void killed_owner(const subject& which) {
  require_one_sided(which);
  const auto wrong =
      errors_of_ranks(which, {.ranks = 3, .kind = ranks_as::processes, .close = false}, [](member& self) {
        const memory mine = self->allocate(MiB), m = self->allocate(MiB);
        const std::vector<region_key> keys = exchange_keys(self, mine);
        if (self->rank() == 2) {
          fill(m.data, MiB, 3);
          for (const std::uint32_t r : {0, 1}) self->finish(self->put({r, keys[r]}, m, 0, MiB, 9));
          kill(getpid(), SIGKILL);
        }
        const std::uint64_t never = self->recv(2, 0, m, 0, 8);
        require_notification(self->wait_for_notification(peer_failure_timeout), 9, MiB);
        require(is_filled(mine.data, MiB, 3), "a put of a rank that died after it has not arrived");
        require(self->wait(never, peer_failure_timeout).status == RG_E_PEER,
                "a receive from a killed peer does not end with RG_E_PEER");
        for (const bool put : {true, false}) {
          std::uint64_t cookie = 0;
          rg_status s =
              put ? self->try_put({2, keys[2]}, m, 0, MiB, 9, cookie) : self->try_get({2, keys[2]}, m, 0, MiB, cookie);
          if (s == RG_OK) s = self->wait(cookie, peer_failure_timeout).status;
          require(s == RG_E_PEER, fmt::format("a {} with a killed peer ends with status {}; expected RG_E_PEER",
                                              put ? "put" : "get", s));
        }
        const std::uint32_t peer = 1 - self->rank();
        self->exchange(peer, m, 1000); // notifications of different peers have no order: the peer must have that of 2
        self->finish(self->put({peer, keys[peer]}, m, 0, 1000, 4));
        require_notification(self->wait_for_notification(), 4, 1000);
        self->exchange(peer, m, 1000);
        self->close();
      });
  if (wrong != std::vector<std::string>{"rank 2: signal 9"}) throw failed(join(wrong, "; "));
}

} // namespace

std::vector<test> one_sided_tests() {
  return {
      {"put-get", "puts and gets of 0 bytes to 4 MiB move exactly their bytes, at any offset and both ways at once",
       put_and_get, false, true},
      {"notifications",
       "hundreds of puts, gets and a message at once: each put notifies once, in order, after its bytes", notifications,
       false, true},
      {"unpolled-notifications",
       "puts of 8 bytes to a rank that does not poll wait or get RG_AGAIN; it then gets each notification",
       notifications_without_poll, false, true},
      {"get-after-put", "a get reads what a completed put of any rank, or the owner, wrote before", get_after_put,
       false, true},
      {"one-sided-refusals", "ranges that leave the region and unknown keys fail with RG_E_OPERATION, without effect",
       refused_transfers, false, true},
      {"cancelled-owner", "cancel() ends puts and gets with that peer and refuses later ones; those with others go on",
       cancelled_owner},
      {"killed-owner", "puts of a rank before its death arrive; puts to it and gets from it end with RG_E_PEER",
       killed_owner},
  };
}

} // namespace regatta::conformance

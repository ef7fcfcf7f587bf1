// SPDX-License-Identifier: Apache-2.0
//
// How a rank sleeps and is woken, without lost wake-ups and without a system call for a rank that is awake.
//
//   the sleeper                          whoever has news
//     word = asleep                        publish the news (sequentially consistent store)
//     look for news once more              if word == asleep
//     none: futex_wait(word == asleep)       word = awake; futex_wake
//     word = awake
//
// Both sides store first and load afterwards, all of it sequentially consistent (Dekker): either the sleeper's second
// look sees the news, or the other one sees that it is asleep. Of several that bring news only the one that changes the
// word makes the system call. The word lies in shared memory, so the futex is one between processes. A rank that is
// killed while it wakes another one loses nothing but that wake-up: sleep is cut into slices, at whose ends its death
// is seen.
//
// A rank that waits for several transports at once (regatta.wait/1) sleeps on a descriptor instead: its peers wake it by
// a byte on the socket over which they met.
#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace shm {

class alignas(64) sleep_word {
public:
  // [loop] of the owner; look for news after it, then call sleep() or get_up().
  void lie_down() noexcept { word_.store(asleep); }
  // Likewise, but the owner will wait for a descriptor: whoever wakes it has to make that readable, too.
  void lie_down_elsewhere() noexcept { word_.store(asleep_elsewhere); }
  void get_up() noexcept { word_.store(awake); }
  // Returns when woken, after `ns`, or for no reason.
  void sleep(std::uint64_t ns) noexcept {
    const timespec time{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
    ::syscall(SYS_futex, &word_, FUTEX_WAIT, asleep, &time, nullptr, 0);
    get_up();
  }
  // [any], any process. Cheap while the owner is awake: the word then stays in everybody's cache.
  bool sleeps() const noexcept { return word_.load() != awake; }
  // True: the owner waits elsewhere, and it is the caller who has to wake it there.
  [[nodiscard]] bool wake() noexcept {
    if (!sleeps()) return false;
    const std::uint32_t was = word_.exchange(awake);
    if (was == asleep) ::syscall(SYS_futex, &word_, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    return was == asleep_elsewhere;
  }

private:
  static constexpr std::uint32_t awake = 0, asleep = 1, asleep_elsewhere = 2;
  std::atomic<std::uint32_t> word_;
};
static_assert(sizeof(std::atomic<std::uint32_t>) == 4 && std::atomic<std::uint32_t>::is_always_lock_free);

} // namespace shm

// SPDX-License-Identifier: Apache-2.0
//
// How a rank sleeps and is woken, without lost wake-ups, and without a system call to wake a rank that is awake.
//
//   sleeper                              waker
//     word = asleep                        publish news (sequentially consistent store)
//     check for news once more             if word == asleep
//     none: futex_wait(word == asleep)       word = awake; futex_wake
//     word = awake
//
// Both sides store first and load afterwards, all sequentially consistent (Dekker): either the sleeper's second check
// sees the news, or the waker sees that the word is asleep. Of several wakers only the one that changes the word makes
// the system call. The word lies in shared memory, so the futex works between processes. If a rank is killed while it
// wakes another one, only that wake-up is lost: sleep is cut into slices, after which the sleeper detects the death.
//
// A rank that waits for several transports at once (extension regatta.wait/1) sleeps on a descriptor instead: its peers
// wake it by a byte on the socket of the handshake.
#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace shm {

// Lies in zeroed shared memory: 0 is awake.
class alignas(64) sleep_word {
public:
  // [loop] of the owner, as are the next three. After lie_down(), check for news once more, then call sleep() if there
  // is none, else get_up().
  void lie_down() noexcept { word_.store(asleep); }
  // As lie_down(), for an owner that then waits for a descriptor instead of calling sleep(), and calls get_up()
  // afterwards: the waker must make the descriptor readable.
  void lie_down_elsewhere() noexcept { word_.store(asleep_elsewhere); }
  void get_up() noexcept { word_.store(awake); }
  // Returns when woken, after `ns` nanoseconds, or spuriously; at once if a waker came after lie_down(). The word is
  // awake then.
  void sleep(std::uint64_t ns) noexcept {
    const timespec time{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
    ::syscall(SYS_futex, &word_, FUTEX_WAIT, asleep, &time, nullptr, 0);
    get_up();
  }
  // [any], in any process: whether the owner sleeps or is about to. Cheap while the owner is awake, because the word
  // then stays in all caches.
  bool sleeps() const noexcept { return word_.load() != awake; }
  // [any], in any process. Wakes the owner if it sleeps; call it after publishing the news. Returns true if the owner
  // waits for a descriptor, which the caller must then make readable.
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

// SPDX-License-Identifier: Apache-2.0
//
// hang_watch tells a process that hangs from one that gets no CPU time. Upper limits of time are generous.
#include "check/harness/hang_watch.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <thread>

#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace regatta::conformance;
using namespace std::chrono_literals;

namespace {

// A process in a group of its own, killed at the end.
class child {
public:
  explicit child(const std::function<void()>& body) : pid_(fork()) {
    if (pid_ == 0) {
      setpgid(0, 0);
      body();
      _exit(0);
    }
    setpgid(pid_, pid_);
  }
  ~child() {
    if (pid_ > 0) end();
  }
  child(const child&) = delete;
  child& operator=(const child&) = delete;
  pid_t pid() const { return pid_; }
  // Kills it and returns the CPU seconds that it has used.
  double end() {
    rusage used{};
    kill(pid_, SIGKILL);
    wait4(pid_, nullptr, 0, &used);
    pid_ = -1;
    return static_cast<double>(used.ru_utime.tv_sec) + static_cast<double>(used.ru_utime.tv_usec) * 1e-6;
  }

private:
  pid_t pid_;
};

void compute() {
  for (std::uint64_t i = 0;; ++i) asm volatile("" : : "r"(i)); // the compiler may not remove the loop
}

// Seconds until the watch finds a hang, or `most`.
double until_hang(hang_watch& watch, double most) {
  const auto begin = std::chrono::steady_clock::now();
  const auto passed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  while (!watch.hangs() && passed() < most) std::this_thread::sleep_for(50ms);
  return passed();
}

} // namespace

TEST_CASE("a process that sleeps is found after the limit and before the cap") {
  child sleeper([] { pause(); });
  hang_watch watch(sleeper.pid(), 1s);
  const double found = until_hang(watch, 20);
  CHECK(found > 0.9);
  CHECK(found < 11);
}

TEST_CASE("progress begins anew") {
  child sleeper([] { pause(); });
  hang_watch watch(sleeper.pid(), 1s);
  for (int i = 0; i < 4; ++i) {
    until_hang(watch, 0.6);
    CHECK(!watch.hangs());
    watch.progress();
  }
}

// On several cores, all threads together use the limit long before one of them does.
TEST_CASE("a process that computes is found when one thread has used the limit") {
  child busy([] {
    for (int i = 0; i < 3; ++i) std::thread(compute).detach();
    compute();
  });
  hang_watch watch(busy.pid(), 2s);
  until_hang(watch, 30);
  CHECK(busy.end() > 4);
}

TEST_CASE("a process that gets no CPU time counts as hung only after 12 times the limit") {
  cpu_set_t here, one;
  REQUIRE(sched_getaffinity(0, sizeof here, &here) == 0);
  CPU_ZERO(&one);
  for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); ++i)
    if (CPU_ISSET(i, &here)) CPU_SET(i, &one);
  const auto compute_there = [&](int policy) {
    const sched_param none{};
    sched_setaffinity(0, sizeof one, &one);
    sched_setscheduler(0, policy, &none);
    compute();
  };
  child other([&] { compute_there(SCHED_OTHER); }), kept([&] { compute_there(SCHED_IDLE); });
  hang_watch watch(kept.pid(), 1s);
  CHECK(until_hang(watch, 4) >= 4);
}

// SPDX-License-Identifier: Apache-2.0
#include "machine/rates_together.hpp"

#include <atomic>
#include <optional>
#include <stdexcept>
#include <system_error>

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <errno.h>
#include <pthread.h>

#include "machine/core_independence.hpp"
#include "machine/host_speed.hpp"

using namespace regatta;

namespace {
std::optional<int> threads_left; // that can be started; without a number, any
} // namespace

// Takes the place of the C library's function in this program.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                              void* argument) noexcept {
  using creates = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto real = reinterpret_cast<creates>(dlsym(RTLD_NEXT, "pthread_create"));
  if (threads_left && (*threads_left)-- <= 0) return EAGAIN;
  return real(thread, attributes, function, argument);
}

TEST_CASE("threads that begin together have their own rates") {
  std::atomic<int> prepared = 0;
  std::atomic<bool> early = false;
  const auto rates = rates_together(3, std::chrono::milliseconds(5), [&](std::size_t) {
    ++prepared;
    return [&] { early = early || prepared != 3; };
  });
  REQUIRE(rates.size() == 3);
  CHECK(!early); // none begins before all are prepared
  for (const thread_rate& r : rates) CHECK(r.units_per_second > 0);
}

TEST_CASE("a thread that cannot be started ends the measurement, and the threads before it") {
  const auto idle = [](std::size_t) { return [] {}; };
  for (int n = 0; n < 3; ++n) {
    threads_left = n;
    CHECK_THROWS_AS(rates_together(3, std::chrono::milliseconds(5), idle), std::system_error);
    threads_left = n;
    CHECK_THROWS_AS(measure_host_speed(3), std::system_error);
  }
  for (int n = 2; n < 8; ++n) { // the first two find out whether threads can be pinned
    threads_left = n;
    CHECK(!measure_core_independence(0, 1));
  }
  threads_left.reset();
}

TEST_CASE("an exception of a thread's preparation is thrown after all threads have ended") {
  CHECK_THROWS_AS(rates_together(3, std::chrono::milliseconds(5),
                                 [](std::size_t t) -> std::function<void()> {
                                   if (t == 1) throw std::runtime_error("no memory");
                                   return [] {};
                                 }),
                  std::runtime_error);
}

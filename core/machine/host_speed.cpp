// SPDX-License-Identifier: Apache-2.0
#include "machine/host_speed.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include <regatta/clock.hpp>

#include "machine/speed.hpp"

namespace regatta {
namespace of_hosts { // a unity build compiles the short names below together with those of other files
namespace {

using steady = std::chrono::steady_clock;
using seconds = std::chrono::duration<double>;

constexpr seconds fma_window{0.25}, copy_window{0.1};
constexpr std::size_t multiply_adds = 1000;               // rounds between two reads of the clock: some 10 us
constexpr std::size_t copied = 16 << 20, piece = 1 << 20; // bytes of a buffer, and between two reads of the clock
constexpr unsigned most_copiers = 32;                     // more would need much memory

struct sum {
  double units_per_second = 0, cpu_share = 0;
};

// Runs `unit` on all threads at the same time; `prepare` before.
sum measure(unsigned threads, seconds window, const std::function<std::function<void()>()>& prepare) {
  std::vector<double> rates(threads), shares(threads);
  std::atomic<unsigned> ready = 0;
  {
    std::vector<std::jthread> running;
    for (unsigned t = 0; t < threads; ++t)
      running.emplace_back([&, t] {
        const auto unit = prepare();
        for (++ready; ready < threads;) std::this_thread::yield();
        const auto begin = steady::now();
        const std::int64_t cpu_begin = rg::thread_cpu_ns();
        seconds passed{0};
        double units = 0;
        do {
          unit();
          ++units;
          passed = steady::now() - begin;
        } while (passed < window);
        rates[t] = units / passed.count();
        shares[t] = 1e-9 * static_cast<double>(rg::thread_cpu_ns() - cpu_begin) / passed.count();
      });
  }
  sum s;
  for (const double r : rates) s.units_per_second += r;
  for (const double share : shares) s.cpu_share += share / threads;
  return s;
}

std::function<void()> fma_unit() {
  return [] {
    volatile float keep = 0; // keeps the compiler from removing the work
    keep = multiply_add(multiply_adds, 0.999f, 0.001f);
    (void)keep;
  };
}

std::function<void()> copy_unit() {
  return [from = std::vector<char>(copied, 1), to = std::vector<char>(copied, 2), at = std::size_t{0}]() mutable {
    std::memcpy(to.data() + at, from.data() + at, piece);
    at = (at + piece) % copied;
  };
}

} // namespace
} // namespace of_hosts

host_speed measure_host_speed(unsigned threads) {
  using namespace of_hosts;
  const sum fma = measure(threads, fma_window, fma_unit);
  const sum copy = measure(std::min(threads, most_copiers), copy_window, copy_unit);
  return {fma.units_per_second * multiply_add_flops * multiply_adds, copy.units_per_second * piece, fma.cpu_share};
}

} // namespace regatta

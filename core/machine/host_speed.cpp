// SPDX-License-Identifier: Apache-2.0
#include "machine/host_speed.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <vector>

#include "machine/rates_together.hpp"
#include "machine/speed.hpp"

namespace regatta {
namespace of_hosts { // a unity build compiles the short names below together with those of other files
namespace {

using seconds = std::chrono::duration<double>;

constexpr seconds fma_window{0.25}, copy_window{0.1};
constexpr std::size_t multiply_adds = 1000;     // rounds between two reads of the clock: some 10 us
constexpr std::size_t copied = 16 << 20;        // bytes of a buffer
constexpr std::size_t copied_at_once = 1 << 20; // bytes between two reads of the clock
constexpr unsigned most_copiers = 32;           // more would need much memory

std::function<void()> fma_unit(std::size_t) {
  return [] {
    volatile float keep = 0; // keeps the compiler from removing the work
    keep = multiply_add(multiply_adds, 0.999f, 0.001f);
    (void)keep;
  };
}

std::function<void()> copy_unit(std::size_t) {
  return [from = std::vector<char>(copied, 1), to = std::vector<char>(copied, 2), at = std::size_t{0}]() mutable {
    std::memcpy(to.data() + at, from.data() + at, copied_at_once);
    at = (at + copied_at_once) % copied;
  };
}

} // namespace
} // namespace of_hosts

host_speed measure_host_speed(unsigned threads) {
  using namespace of_hosts;
  const auto fma = rates_together(threads, fma_window, fma_unit);
  const auto copy = rates_together(std::min(threads, most_copiers), copy_window, copy_unit);
  host_speed speed;
  for (const thread_rate& t : fma) {
    speed.fma += t.units_per_second * multiply_add_flops * multiply_adds;
    speed.cpu_share += t.cpu_share / threads;
  }
  for (const thread_rate& t : copy) speed.copy += t.units_per_second * copied_at_once;
  return speed;
}

} // namespace regatta

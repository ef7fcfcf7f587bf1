// SPDX-License-Identifier: Apache-2.0
#include "machine/speed.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <vector>

#include <regatta/simd.hpp>

namespace regatta {
namespace {

using steady = std::chrono::steady_clock;

// Calls work(i) `times` times. Returns the highest of their rates: `amount` over the seconds of one call.
template <class Work> double best_rate(int times, double amount, const Work& work) {
  double best = 0;
  for (int i = 0; i < times; ++i) {
    const auto begin = steady::now();
    work(i);
    best = std::max(best, amount / std::chrono::duration<double>(steady::now() - begin).count());
  }
  return best;
}

float multiply_add_loop(std::size_t rounds, float a, float b) {
  std::array<float, 256> x{}; // enough independent chains to hide the latency of every unit
  for (std::size_t r = 0; r < rounds; ++r)
    for (float& v : x) v = v * a + b;
  float sum = 0;
  for (const float v : x) sum += v;
  return sum;
}

} // namespace

float multiply_add(std::size_t rounds, float a, float b) {
  return rg::simd::widest<multiply_add_loop>(rounds, a, b);
}

double measure_flops() {
  constexpr std::size_t rounds = 200'000;
  volatile float keep = 0; // keeps the compiler from removing the work
  return best_rate(3, multiply_add_flops * rounds, [&](int) { keep = multiply_add(rounds, 0.999f, 0.001f); });
}

double measure_copy_rate() {
  // A copy takes about half a millisecond, so at least one of 20 is likely to run without interruption.
  constexpr std::size_t size = std::size_t{4} << 20;
  std::vector<char> from(size, 1), to(size, 2);
  return best_rate(20, 2.0 * size, [&](int i) {
    std::memcpy(to.data(), from.data(), size);
    from[static_cast<std::size_t>(i)] = to[size - 1]; // keeps the compiler from removing the copies
  });
}

} // namespace regatta

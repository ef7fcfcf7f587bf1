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

double seconds_since(steady::time_point begin) {
  return std::chrono::duration<double>(steady::now() - begin).count();
}

} // namespace

RG_SIMD float multiply_add(std::size_t rounds, float a, float b) {
  std::array<float, 256> x{}; // enough independent chains to hide the latency of every unit
  for (std::size_t r = 0; r < rounds; ++r)
    for (float& v : x) v = v * a + b;
  float sum = 0;
  for (const float v : x) sum += v;
  return sum;
}

double measure_flops() {
  constexpr std::size_t rounds = 200'000;
  double best = 0;
  volatile float keep = 0;
  for (int i = 0; i < 3; ++i) {
    const auto begin = steady::now();
    keep = multiply_add(rounds, 0.999f, 0.001f);
    best = std::max(best, multiply_add_flops * rounds / seconds_since(begin));
  }
  (void)keep;
  return best;
}

double measure_copy_rate() {
  // A copy takes about half a millisecond, so at least one of 20 is likely to run without interruption.
  constexpr std::size_t size = std::size_t{4} << 20;
  std::vector<char> from(size, 1), to(size, 2);
  double best = 0;
  for (int i = 0; i < 20; ++i) {
    const auto begin = steady::now();
    std::memcpy(to.data(), from.data(), size);
    best = std::max(best, 2.0 * size / seconds_since(begin));
    from[static_cast<std::size_t>(i)] = to[size - 1]; // keeps the compiler from removing the copies
  }
  return best;
}

} // namespace regatta

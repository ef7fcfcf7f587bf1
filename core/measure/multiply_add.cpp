// SPDX-License-Identifier: Apache-2.0
#include "measure/multiply_add.hpp"

#include <regatta/simd.hpp>

#include <array>

namespace regatta {

RG_SIMD float multiply_add(std::size_t rounds, float a, float b) {
  std::array<float, 256> x{}; // enough independent chains to hide the latency of every unit
  for (std::size_t r = 0; r < rounds; ++r)
    for (float& v : x) v = v * a + b;
  float sum = 0;
  for (const float v : x) sum += v;
  return sum;
}

} // namespace regatta

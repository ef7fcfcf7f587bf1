// SPDX-License-Identifier: Apache-2.0
#include "measure/multiply_add.hpp"

#include <array>

namespace regatta {

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
__attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3")))
#endif
float multiply_add(std::size_t rounds, float a, float b) {
  std::array<float, 256> x{}; // enough independent chains to hide the latency of every unit
  for (std::size_t r = 0; r < rounds; ++r)
    for (float& v : x) v = v * a + b;
  float sum = 0;
  for (const float v : x) sum += v;
  return sum;
}

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#include "data/convert.hpp"

#include <regatta/simd.hpp>

namespace regatta {
namespace {

void convert_loop(float* __restrict out, const std::uint8_t* __restrict in, std::size_t n, float scale,
                  float offset) noexcept {
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<float>(in[i]) * scale + offset;
}

} // namespace

void bytes_to_floats(float* __restrict out, const std::uint8_t* __restrict in, std::size_t n, float scale,
                     float offset) noexcept {
  rg::simd::widest<convert_loop>(out, in, n, scale, offset);
}

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <regatta/random.hpp>

namespace regatta {

// Normally distributed numbers with mean 0 and standard deviation 1, from 16 random bits each: the quantiles in the
// middle of 65536 equally likely intervals, up to 4.3 deviations. A table replaces logarithm and cosine, because input
// is generated in the timed region.
class normal_table {
public:
  normal_table();

  // [any] Return the numbers for 16 bits (below 65536) and for the eight times 16 bits of `b`, low halves first.
  float one(std::uint32_t sixteen_bits) const noexcept { return quantiles_[sixteen_bits]; }
  std::array<float, 8> eight(const rg::bits4& b) const noexcept {
    return {one(b[0] & 0xffff), one(b[0] >> 16), one(b[1] & 0xffff), one(b[1] >> 16),
            one(b[2] & 0xffff), one(b[2] >> 16), one(b[3] & 0xffff), one(b[3] >> 16)};
  }

private:
  std::vector<float> quantiles_;
};

} // namespace regatta

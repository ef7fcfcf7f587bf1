// SPDX-License-Identifier: Apache-2.0
//
// Mistake: promises to be unbiased, but what a message decompresses to is 4 % too large. Caught by test `unbiased`.
#include "../compressors.hpp"

struct compressor_overshoots : test::qsgd {
  void decompress(std::span<const std::byte> message, std::span<float> y) {
    qsgd::decompress(message, y);
    for (float& x : y) x *= 1.04F;
  }
};

RG_PLUGIN("compressor_overshoots", "1.0",
          rg::compressor<compressor_overshoots>("compressor_overshoots", "broken: gradients are 4 % too large"))

// SPDX-License-Identifier: Apache-2.0
//
// Mistake: its residual lacks 1 % of what a message lacks. Caught by test `residual`.
#include "../compressors.hpp"

struct compressor_decays : test::top_k {
  void residual(std::span<const std::byte> message, std::span<float> p) {
    top_k::residual(message, p);
    for (float& x : p) x *= 0.99F;
  }
};

RG_PLUGIN("compressor_decays", "1.0", rg::compressor<compressor_decays>("compressor_decays", "broken: residuals decay"))

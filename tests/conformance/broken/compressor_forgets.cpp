// SPDX-License-Identifier: Apache-2.0
//
// Mistake: its residual is 0, as if all had been sent. Caught by test `residual`.
#include "../compressors.hpp"

struct compressor_forgets : test::top_k {
  void residual(std::span<const std::byte>, std::span<float> p) { std::fill(p.begin(), p.end(), 0.0F); }
};

RG_PLUGIN("compressor_forgets", "1.0", rg::compressor<compressor_forgets>("compressor_forgets", "broken: no residual"))

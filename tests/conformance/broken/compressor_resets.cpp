// SPDX-License-Identifier: Apache-2.0
//
// Mistake: every 100th residual of vectors of one length is 0. Caught by test `residual`.
#include "../compressors.hpp"

#include <map>

struct compressor_resets : test::top_k {
  void residual(std::span<const std::byte> message, std::span<float> p) {
    top_k::residual(message, p);
    if (++calls[p.size()] % 100 == 0) std::fill(p.begin(), p.end(), 0.0F);
  }
  std::map<std::size_t, int> calls;
};

RG_PLUGIN("compressor_resets", "1.0",
          rg::compressor<compressor_resets>("compressor_resets", "broken: residuals are reset"))

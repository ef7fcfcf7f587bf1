// SPDX-License-Identifier: Apache-2.0
//
// Mistake: rounds to the nearest level and promises to be unbiased. Caught by test `unbiased`.
#include "../compressors.hpp"

struct compressor_rounds : test::qsgd {
  void compress(std::span<const float> x, std::span<std::byte> message) {
    quantise(x, message, [](std::size_t) { return 0.5F; });
  }
};

RG_PLUGIN("compressor_rounds", "1.0", rg::compressor<compressor_rounds>("compressor_rounds", "broken: biased"))

// SPDX-License-Identifier: Apache-2.0
//
// Mistake: add() leaves out the last element. Caught by test `message-sums`.
#include "../compressors.hpp"

struct compressor_adds_half : test::random_block {
  void add(std::span<std::byte> sum, std::span<const std::byte> message, std::uint64_t n) {
    for (std::size_t i = 1; i < kept(n); ++i)
      test::store(sum, i, test::load<float>(sum, i) + test::load<float>(message, i));
  }
};

RG_PLUGIN("compressor_adds_half", "1.0",
          rg::compressor<compressor_adds_half>("compressor_adds_half", "broken: adds a part"))

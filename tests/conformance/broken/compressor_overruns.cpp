// SPDX-License-Identifier: Apache-2.0
//
// Mistake: bytes() forgets the first index, which compress() writes all the same. Caught by test `message-bytes`.
#include "../compressors.hpp"

struct compressor_overruns : test::random_block {
  std::uint64_t bytes(std::uint64_t n) { return test::random_block::bytes(n) - sizeof(std::uint32_t); }
};

RG_PLUGIN("compressor_overruns", "1.0",
          rg::compressor<compressor_overruns>("compressor_overruns", "broken: too few bytes"))

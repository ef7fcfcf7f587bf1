// SPDX-License-Identifier: Apache-2.0
//
// Mistake: bytes() is that of the largest message, more than compress() writes. Caught by test `message-bytes`.
#include "../compressors.hpp"

struct compressor_wastes : test::qsgd {
  std::uint64_t bytes(std::uint64_t n) { return test::qsgd::bytes(n) + 16; }
};

RG_PLUGIN("compressor_wastes", "1.0", rg::compressor<compressor_wastes>("compressor_wastes", "broken: too many bytes"))

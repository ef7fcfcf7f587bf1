// SPDX-License-Identifier: Apache-2.0
//
// Mistake: promises a delta that only some gradients have. Caught by test `contraction`.
#include "../compressors.hpp"

struct compressor_boasts : test::top_k {
  double delta(std::uint64_t) { return 0.9; }
};

RG_PLUGIN("compressor_boasts", "1.0", rg::compressor<compressor_boasts>("compressor_boasts", "broken: delta too large"))

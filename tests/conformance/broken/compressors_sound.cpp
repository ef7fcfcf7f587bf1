// SPDX-License-Identifier: Apache-2.0
//
// Nothing wrong: what the files compressor_*.cpp are made of.
#include "../compressors.hpp"

RG_PLUGIN("compressors_sound", "1.0", rg::compressor<test::qsgd>("qsgd", "nothing wrong"),
          rg::compressor<test::top_k>("top_k", "nothing wrong"),
          rg::compressor<test::random_block>("random_block", "nothing wrong"))

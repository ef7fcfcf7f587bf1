// SPDX-License-Identifier: Apache-2.0
//
// Mistake: each gradient is 4 % too large. Caught by test `mean`.
#include "../int8.hpp"

struct mistake : test::sound {
  static constexpr float levels = 7;
  static constexpr float weight = 1.04F;
};

RG_PLUGIN("int4_overshoots", "1.0",
          rg::strategy<test::int8<mistake>>("int4_overshoots", "broken: gradients are 4 % too large"))

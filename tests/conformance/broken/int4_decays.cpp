// SPDX-License-Identifier: Apache-2.0
//
// Mistake: the residual loses 1 % in each step. Levels are so wide that a step leaves much to later ones. Caught by
// test `mean`.
#include "../int8.hpp"

struct mistake : test::sound {
  static constexpr float levels = 7;
  static constexpr float kept_of_residual = 0.99F;
};

RG_PLUGIN("int4_decays", "1.0",
          rg::strategy<test::int8<mistake>>("int4_decays", "broken: error feedback decays by 1 % in a step"))

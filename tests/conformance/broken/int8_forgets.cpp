// SPDX-License-Identifier: Apache-2.0
//
// Mistake: the part of a gradient that 8 bits cannot hold is never sent. Caught by test `mean`.
#include "../int8.hpp"

struct mistake : test::sound {
  static constexpr bool forgets_residual = true;
};

RG_PLUGIN("int8_forgets", "1.0", rg::strategy<test::int8<mistake>>("int8_forgets", "broken: no error feedback"))

// SPDX-License-Identifier: Apache-2.0
//
// Mistake: one tensor is never updated. Caught by test `mean`.
#include "../int8.hpp"

struct mistake : test::sound {
  static constexpr bool leaves_out_a_tensor = true;
};

RG_PLUGIN("int8_leaves_out", "1.0",
          rg::strategy<test::int8<mistake>>("int8_leaves_out", "broken: one tensor is not updated"))

// SPDX-License-Identifier: Apache-2.0
//
// Mistake: a worker adds its own gradient without the rounding that the others see. Caught by test `replicas`.
#include "../int8.hpp"

struct mistake : test::sound {
  static constexpr bool adds_own_gradient = true;
};

RG_PLUGIN("int8_differs", "1.0", rg::strategy<test::int8<mistake>>("int8_differs", "broken: its own gradient is exact"))

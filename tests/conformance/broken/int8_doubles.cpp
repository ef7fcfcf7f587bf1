// SPDX-License-Identifier: Apache-2.0
//
// Mistake: a step applies twice what the messages say. Caught by test `mean`.
#include "../int8.hpp"

struct mistake : test::sound {
  static constexpr float weight = 2;
};

RG_PLUGIN("int8_doubles", "1.0", rg::strategy<test::int8<mistake>>("int8_doubles", "broken: applies twice the sum"))

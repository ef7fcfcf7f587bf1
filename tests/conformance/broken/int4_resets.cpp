// SPDX-License-Identifier: Apache-2.0
//
// Mistake: the residual is set to 0 every 100 steps. Caught by test `mean`.
#include "../int8.hpp"

struct mistake : test::sound {
  static constexpr float levels = 7;
  static constexpr std::uint64_t resets_every = 100;
};

RG_PLUGIN("int4_resets", "1.0", rg::strategy<test::int8<mistake>>("int4_resets", "broken: error feedback is reset"))

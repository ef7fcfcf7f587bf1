// SPDX-License-Identifier: Apache-2.0
//
// Mistake: there is an exchange in every other step only, but the period declared is 1. Caught by test `period`.
#include "../random_pairs.hpp"

struct mistake : test::sound_pairs {
  static constexpr bool skips_odd_steps = true;
};

RG_PLUGIN("pairs_skip_steps", "1.0",
          rg::strategy<test::random_pairs<mistake>>("pairs_skip_steps",
                                                    "broken: repeats after two steps, but declares one"))

// SPDX-License-Identifier: Apache-2.0
//
// Mistake: which worker has no partner repeats after as many steps as there are workers, but the period declared is 1.
// Caught by test `period`.
#include "../random_pairs.hpp"

struct mistake : test::sound_pairs {
  static constexpr bool takes_turns = true;
};

RG_PLUGIN("pairs_take_turns", "1.0",
          rg::strategy<test::random_pairs<mistake>>("pairs_take_turns", "broken: a longer period than it declares"))

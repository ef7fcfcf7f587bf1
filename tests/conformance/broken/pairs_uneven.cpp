// SPDX-License-Identifier: Apache-2.0
//
// Mistake: the higher rank of a pair keeps more of its own weights than it gives: the mean of all weights drifts.
// Caught by test `conserves`.
#include "../random_pairs.hpp"

struct mistake : test::sound_pairs {
  static constexpr double kept_by_the_higher = 0.52;
};

RG_PLUGIN("pairs_uneven", "1.0",
          rg::strategy<test::random_pairs<mistake>>("pairs_uneven",
                                                    "broken: the weights of an average are not doubly stochastic"))

// SPDX-License-Identifier: Apache-2.0
//
// Mistake: the weights of an average add up to less than 1. Caught by test `conserves`.
#include "../random_pairs.hpp"

struct mistake : test::sound_pairs {
  static constexpr double sum_of_parts = 0.9999;
};

RG_PLUGIN("pairs_shrink", "1.0",
          rg::strategy<test::random_pairs<mistake>>("pairs_shrink",
                                                    "broken: an average of equal weights is smaller than they are"))

// SPDX-License-Identifier: Apache-2.0
//
// Nothing wrong: what the files pairs_*.cpp are made of.
#include "../random_pairs.hpp"

RG_PLUGIN("pairs_sound", "1.0", rg::strategy<test::random_pairs<test::sound_pairs>>("pairs_sound", "nothing wrong"))

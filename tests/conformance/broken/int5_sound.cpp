// SPDX-License-Identifier: Apache-2.0
//
// Nothing wrong: what the files int5_*.cpp are made of.
#include "../int8.hpp"

struct few_levels : test::sound {
  static constexpr float levels = 15;
};

RG_PLUGIN("int5_sound", "1.0", rg::strategy<test::int8<few_levels>>("int5_sound", "nothing wrong"))

// SPDX-License-Identifier: Apache-2.0
//
// Nothing wrong: what the files int4_*.cpp are made of.
#include "../int8.hpp"

struct few_levels : test::sound {
  static constexpr float levels = 7;
};

RG_PLUGIN("int4_sound", "1.0", rg::strategy<test::int8<few_levels>>("int4_sound", "nothing wrong"))

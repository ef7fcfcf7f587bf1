// SPDX-License-Identifier: Apache-2.0
//
// Nothing wrong: what the other int8_* strategies are made of.
#include "../int8.hpp"

RG_PLUGIN("int8_sound", "1.0", rg::strategy<test::int8<test::sound>>("int8_sound", "nothing wrong"))

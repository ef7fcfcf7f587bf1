// SPDX-License-Identifier: Apache-2.0
//
// Mistake: no RG_PLAN_LOSSY, and a steady_from that would hide it. Caught by test `serial`.
#include "../int8.hpp"

struct mistake : test::sound {
  static constexpr std::uint32_t flags = 0;
  static constexpr std::uint64_t steady_from = 1;
};

RG_PLUGIN("int8_unsaid", "1.0", rg::strategy<test::int8<mistake>>("int8_unsaid", "broken: lossy without a word"))

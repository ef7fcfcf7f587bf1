// SPDX-License-Identifier: Apache-2.0
//
// A step never calls rg_hooks.backward(): a run counts its time as backward pass. The test `backward` remarks it.
#include "interpreted.hpp"

namespace {

struct mistaken : broken::interpreted {
  using interpreted::interpreted;
  void begin_backward(const rg::hooks&) override {}
};

struct executor : broken::runs<mistaken> {};

} // namespace

RG_PLUGIN("never_backward", "1.0", rg::executor<executor>("never_backward", "broken: no backward()"))

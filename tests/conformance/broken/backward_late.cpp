// SPDX-License-Identifier: Apache-2.0
//
// A step calls rg_hooks.backward() behind ready().
#include "interpreted.hpp"

namespace {

struct mistaken : broken::interpreted {
  using interpreted::interpreted;
  void begin_backward(const rg::hooks&) override {}
  void end_backward(const rg::hooks& hooks) override {
    interpreted::end_backward(hooks);
    hooks.backward();
  }
};

struct executor : broken::runs<mistaken> {};

} // namespace

RG_PLUGIN("backward_late", "1.0", rg::executor<executor>("backward_late", "broken: backward() comes late"))

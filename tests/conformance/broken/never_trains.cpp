// SPDX-License-Identifier: Apache-2.0
//
// A step has no backward pass: all gradients are 0, and a training step changes no weight.
#include "interpreted.hpp"

namespace {

struct mistaken : broken::interpreted {
  using interpreted::interpreted;
  void begin_backward(const rg::hooks&) override {}
  void backward_node(std::size_t, const reference::batch&) override {}
};

struct executor : broken::runs<mistaken> {};

} // namespace

RG_PLUGIN("never_trains", "1.0", rg::executor<executor>("never_trains", "broken: no backward pass"))

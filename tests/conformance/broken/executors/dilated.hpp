// SPDX-License-Identifier: Apache-2.0
//
// A model with an attribute that no executor knows.
#pragma once

#include "../interpreted.hpp"

namespace {

using namespace broken;

struct dilated {
  struct parameters {};
  void build(rg::network& net, const parameters&) const {
    const rg::value x = net.values("image", {3, 8, 8}), label = net.index("label", 10);
    const auto weight = net.weight("wide.weight", {4, 3, 3, 3}, {.init = RG_INIT_NORMAL, .b = 0.1});
    const rg::value wide = net.node("conv2d", "wide", {x}, {weight},
                                    {{"kernel", 3}, {"stride", 1}, {"padding", 1}, {"dilation", 2}}, {4, 8, 8});
    rg::softmax_cross_entropy(rg::dense(rg::flatten(wide), "classes", 10), label);
  }
};

} // namespace

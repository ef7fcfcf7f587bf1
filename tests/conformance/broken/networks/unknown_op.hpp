// SPDX-License-Identifier: Apache-2.0
//
// An op that no executor has.
#pragma once

#include <regatta/model.hpp>

namespace {

struct unknown_op {
  struct parameters {};
  void build(rg::network& net, const parameters&) const {
    rg::value x = net.values("image", {3, 8, 8});
    const rg::value label = net.index("label", 10);
    const rg::value odd = net.node("depthwise_conv2d", "depth1", {x}, {}, {}, {3, 8, 8});
    rg::softmax_cross_entropy(rg::dense(rg::flatten(odd), "classes", 10), label);
  }
};

} // namespace

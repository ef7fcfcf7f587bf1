// SPDX-License-Identifier: Apache-2.0
//
// Defect: its last node is not a loss.
#pragma once

#include <regatta/model.hpp>

namespace {

struct no_loss {
  struct parameters {};
  void build(rg::network& net, const parameters&) const {
    rg::value x = net.values("image", {3, 8, 8});
    net.index("label", 10);
    rg::dense(rg::flatten(x), "classes", 10);
  }
};

} // namespace

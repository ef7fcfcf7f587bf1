// SPDX-License-Identifier: Apache-2.0
//
// The second use of a shared weight overwrites the gradient of the first one.
#include "interpreted.hpp"

namespace {

struct mistaken : broken::interpreted {
  using interpreted::interpreted;
  void backward_node(std::size_t k, const reference::batch& b) override {
    for (const std::uint32_t t : weights_of_[k])
      std::fill(reference_.gradients[t].begin(), reference_.gradients[t].end(), 0.0);
    interpreted::backward_node(k, b);
  }
};

struct executor : broken::runs<mistaken> {};

} // namespace

RG_PLUGIN("overwrites_shared", "1.0", rg::executor<executor>("overwrites_shared", "broken: shared weights"))

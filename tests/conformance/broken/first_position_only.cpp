// SPDX-License-Identifier: Apache-2.0
//
// Of a dense layer over positions only the first position has a gradient.
#include "interpreted.hpp"

namespace {

struct mistaken : broken::interpreted {
  using interpreted::interpreted;
  void backward_node(std::size_t k, const reference::batch& b) override {
    if (ops_[k] == "dense") {
      std::vector<double>& g = reference_.value_gradients[k];
      const std::size_t outputs = static_cast<std::size_t>(shape_of(weights_of_[k][0])), sample = g.size() / b.samples;
      for (std::size_t i = 0; i < g.size(); ++i)
        if (i % sample >= outputs) g[i] = 0;
    }
    interpreted::backward_node(k, b);
  }
  std::int64_t shape_of(std::uint32_t number) const {
    const auto at = std::find(order_.begin(), order_.end(), number) - order_.begin();
    return tensors_[static_cast<std::size_t>(at)].shape[0];
  }
};

struct executor : broken::runs<mistaken> {};

} // namespace

RG_PLUGIN("first_position_only", "1.0", rg::executor<executor>("first_position_only", "broken: dense of [T,I]"))

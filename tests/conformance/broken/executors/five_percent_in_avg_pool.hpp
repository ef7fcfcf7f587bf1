// SPDX-License-Identifier: Apache-2.0
//
// Defect: the gradient of avg_pool is 5 % too large.
#pragma once

#include "../interpreted.hpp"

namespace {

using namespace broken;

struct too_long : interpreted {
  using interpreted::interpreted;
  void backward_node(std::size_t k, const reference::batch& b) override {
    interpreted::backward_node(k, b);
    if (ops_[k] == "avg_pool")
      for (double& g : reference_.value_gradients[reference_.inputs_of(k)[0]]) g *= 1.05;
  }
};

struct five_percent_in_avg_pool : runs<too_long> {};

} // namespace

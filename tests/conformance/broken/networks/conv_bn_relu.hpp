// SPDX-License-Identifier: Apache-2.0
//
// Convolutions, batch normalisation and ReLU, as in MobileNet with ordinary convolutions: many corners of ReLUs, each
// moved by statistics of the batch.
#pragma once

#include <regatta/model.hpp>

#include <string>

namespace {

struct conv_bn_relu {
  struct parameters {};
  void build(rg::network& net, const parameters&) const {
    rg::value x = net.values("image", {3, 32, 32});
    const rg::value label = net.index("label", 10);
    const auto block = [&](const std::string& name, std::int64_t channels, std::int64_t kernel, std::int64_t stride) {
      x = rg::conv2d(x, name, channels, {.kernel = kernel, .stride = stride, .padding = kernel / 2});
      x = rg::relu(rg::batch_norm(x, name + "_norm"));
    };
    block("first", 16, 3, 1);
    std::int64_t channels = 16;
    for (int i = 1; i <= 3; ++i) {
      block("wide" + std::to_string(i), channels, 3, 2);
      block("deep" + std::to_string(i), channels *= 2, 1, 1);
    }
    rg::softmax_cross_entropy(rg::dense(rg::global_avg_pool(x), "classes", 10), label);
  }
};

} // namespace

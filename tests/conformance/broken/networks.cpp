// SPDX-License-Identifier: Apache-2.0
//
// Graphs of layers: a correct one that is hard to differentiate numerically, and some that no executor can compile.
#include <regatta/model.hpp>

namespace {

// Convolutions, batch normalisation and ReLU, as in MobileNet with ordinary convolutions: many corners of ReLUs, each
// moved by statistics of the batch.
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

// An op that no executor has.
struct unknown_op {
  struct parameters {};
  void build(rg::network& net, const parameters&) const {
    rg::value x = net.values("image", {3, 8, 8});
    const rg::value label = net.index("label", 10);
    const rg::value odd = net.node("depthwise_conv2d", "depth1", {x}, {}, {}, {3, 8, 8});
    rg::softmax_cross_entropy(rg::dense(rg::flatten(odd), "classes", 10), label);
  }
};

// Defect: its last node is not a loss.
struct no_loss {
  struct parameters {};
  void build(rg::network& net, const parameters&) const {
    rg::value x = net.values("image", {3, 8, 8});
    net.index("label", 10);
    rg::dense(rg::flatten(x), "classes", 10);
  }
};

} // namespace

RG_PLUGIN("broken_networks", "1.0",
          rg::graph_model<conv_bn_relu>("conv_bn_relu", "nothing wrong: a network with many corners"),
          rg::graph_model<unknown_op>("unknown_op", "broken: an op that no executor has"),
          rg::graph_model<no_loss>("no_loss", "broken: does not end in a loss"))

// SPDX-License-Identifier: Apache-2.0
//
// A multi-layer perceptron: dense layers with ReLU, for quick runs and as the smallest example of a graph.
#include <regatta/model.hpp>

namespace {

struct mlp {
  struct parameters {
    std::vector<std::int64_t> input = {3, 32, 32};
    std::vector<std::int64_t> hidden = {512, 512};
    std::int64_t classes = 10;
    double dropout = 0;
  };
  static constexpr auto fields = rg::fields(
      rg::field("input", &parameters::input, "shape of an image: channels, height, width").range(1, 1048576),
      rg::field("hidden", &parameters::hidden, "units of each hidden layer").range(1, 1048576),
      rg::field("classes", &parameters::classes, "number of classes").range(2, 1000000),
      rg::field("dropout", &parameters::dropout, "probability that a hidden unit is dropped").range(0, 0.99));

  void build(rg::network& net, const parameters& p) const {
    net.unit("images");
    rg::value x = net.values("image", p.input); // 3 x 32 x 32
    const rg::value label = net.index("label", p.classes);
    x = rg::flatten(x); // 3072
    for (std::size_t i = 0; i < p.hidden.size(); ++i)
      x = rg::dropout(rg::relu(rg::dense(x, "fc" + std::to_string(i + 1), p.hidden[i])), p.dropout); // hidden[i]
    rg::softmax_cross_entropy(rg::dense(x, "output", p.classes, {.gain = 1}), label);                // classes
  }
};

} // namespace

RG_PLUGIN("mlp", "0.1.0", rg::graph_model<mlp>("mlp", "multi-layer perceptron"))

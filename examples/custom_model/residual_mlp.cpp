// SPDX-License-Identifier: Apache-2.0
//
// A model that is a graph: it describes its layers, and an executor computes them. This file depends neither on oneDNN
// or CUDA nor on memory layouts, so it runs on every executor.
//
// The network: an image, one dense layer, and residual blocks, which add their input to their output (He et al., Deep
// residual learning for image recognition, 2016; here without convolutions).
#include <regatta/model.hpp>

namespace {

struct residual_mlp {
  // The parameters that a user may set under [model]. The initialisers are the defaults; `fields` gives names, help
  // texts and bounds. The engine checks the file against them before build() runs, and `regatta describe
  // model/residual_mlp` prints them.
  struct parameters {
    std::vector<std::int64_t> input = {3, 32, 32};
    std::int64_t width = 64;
    std::int64_t blocks = 2;
    std::int64_t classes = 10;
  };
  static constexpr auto fields =
      rg::fields(rg::field("input", &parameters::input, "shape of an image: channels, height, width").range(1, 65536),
                 rg::field("width", &parameters::width, "units of every layer").range(1, 65536),
                 rg::field("blocks", &parameters::blocks, "residual blocks").range(0, 1000),
                 rg::field("classes", &parameters::classes, "number of classes").range(2, 1000000));

  // Shapes in the comments are of one sample. A layer whose inputs do not fit, e.g. an add of two shapes, throws an
  // error that names the layer.
  void build(rg::network& net, const parameters& p) const {
    net.unit("images"); // the result has throughput in images/s

    // Inputs come first. The engine fills them by name, from the source that [data] sets.
    rg::value x = net.values("image", p.input);            // [channels, height, width]
    const rg::value label = net.index("label", p.classes); // one integer

    x = rg::relu(rg::dense(rg::flatten(x), "stem", p.width)); // [width]
    for (std::int64_t i = 1; i <= p.blocks; ++i) {
      const std::string name = "block" + std::to_string(i);
      const rg::value inner = rg::relu(rg::dense(x, name + ".in", p.width)); // [width]
      // A value may be used several times: its gradients are summed.
      x = rg::relu(rg::add(x, rg::dense(inner, name + ".out", p.width, {.gain = 0.5}))); // [width]
    }
    // The last node is the loss. Gain 1, because no ReLU follows.
    rg::softmax_cross_entropy(rg::dense(x, "output", p.classes, {.gain = 1}), label);
  }
};

} // namespace

RG_PLUGIN("custom_model", "1.0", rg::graph_model<residual_mlp>("residual_mlp", "example: dense residual blocks"))

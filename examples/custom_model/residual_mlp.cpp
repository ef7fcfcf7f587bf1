// SPDX-License-Identifier: Apache-2.0
//
// A model that is a graph: it says which layers it has, and an executor does the rest. Nothing here knows of oneDNN,
// CUDA, gradients or memory, so the same file runs wherever an executor runs.
//
// The network: an image, one dense layer, and blocks whose input is added to their output (He et al., Deep residual
// learning for image recognition, 2016, here without convolutions).
#include <regatta/model.hpp>

namespace {

struct residual_mlp {
  // What a user may write under [model]. The initialisers are the defaults; `fields` names, documents and bounds them.
  // The engine checks the file against this before build() runs, and `regatta describe model/residual_mlp` prints it.
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

  // Shapes in the comments are of one sample. What does not fit (two values added that differ in shape) is thrown by
  // the layer itself, with its name.
  void build(rg::network& net, const parameters& p) const {
    net.unit("images"); // so throughput is in images/s

    // Inputs come first. The engine fills them from whatever [data] says, by name.
    rg::value x = net.values("image", p.input);            // [channels, height, width]
    const rg::value label = net.index("label", p.classes); // one integer

    x = rg::relu(rg::dense(rg::flatten(x), "stem", p.width)); // [width]
    for (std::int64_t i = 1; i <= p.blocks; ++i) {
      const std::string name = "block" + std::to_string(i);
      const rg::value inner = rg::relu(rg::dense(x, name + ".in", p.width)); // [width]
      // A value may be used more than once: its gradients are summed.
      x = rg::relu(rg::add(x, rg::dense(inner, name + ".out", p.width, {.gain = 0.5}))); // [width]
    }
    // The last node is the loss. Gain 1, because no ReLU follows.
    rg::softmax_cross_entropy(rg::dense(x, "output", p.classes, {.gain = 1}), label);
  }
};

} // namespace

RG_PLUGIN("custom_model", "1.0", rg::graph_model<residual_mlp>("residual_mlp", "example: dense residual blocks"))

// A model as a graph of layers, which executors compute on a CPU or a GPU.
// share/doc/regatta/docs/writing-a-plugin.md describes all layers, and models that compute their steps themselves.
#include <regatta/model.hpp>

namespace {

struct my_model {
  // The keys that a user may set under [model], with defaults; the fields have help and bounds.
  struct parameters {
    std::int64_t width = 64;
    std::int64_t classes = 10;
  };
  static constexpr auto fields =
      rg::fields(rg::field("width", &parameters::width, "units of the hidden layer").range(1, 65536),
                 rg::field("classes", &parameters::classes, "number of classes").range(2, 1000000));

  // Shapes are those of one sample.
  void build(rg::network& net, const parameters& p) const {
    net.unit("images"); // throughput is in images/s
    const rg::value image = net.values("image", {3, 32, 32});
    const rg::value label = net.index("label", p.classes);
    const rg::value hidden = rg::relu(rg::dense(rg::flatten(image), "hidden", p.width));
    // The last node is the loss.
    rg::softmax_cross_entropy(rg::dense(hidden, "output", p.classes, {.gain = 1}), label);
  }
};

} // namespace

RG_PLUGIN("my_model", "0.1", rg::graph_model<my_model>("my_model", "say in one line what it is"))

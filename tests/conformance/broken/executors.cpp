// SPDX-License-Identifier: Apache-2.0
//
// Executors that run the reference: a sound one, and some with one defect each.
#include "interpreted.hpp"

namespace {

using namespace broken;

using sound = runs<interpreted>;

// Defect: the gradient of one op.
struct too_long : interpreted {
  using interpreted::interpreted;
  void backward_node(std::size_t k, const reference::batch& b) override {
    interpreted::backward_node(k, b);
    if (ops_[k] == "avg_pool")
      for (double& g : reference_.value_gradients[reference_.inputs_of(k)[0]]) g *= 1.05;
  }
};
struct five_percent_in_avg_pool : runs<too_long> {};

// Defect: the weights that a model starts with.
struct own_start : interpreted {
  using interpreted::interpreted;
  void start(const rg_tensor& t, std::uint32_t number, std::uint64_t seed, std::span<float> out) override {
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = t.init == RG_INIT_CONSTANT ? static_cast<float>(t.init_a)
                                          : 0.1F * rg::random_normals(seed, i, number, rg::stream_init)[0];
  }
};
struct initialises_by_its_own_rule : runs<own_start> {};

// Defect: attributes that it does not know do not matter to it.
struct ignores_attributes : sound {
  static std::unique_ptr<model> compile(const rg_host*, const parameters&, const rg_graph& graph,
                                        const rg_model_setup& setup) {
    plain_graph plain(graph);
    std::vector<rg_node>& nodes = plain.nodes;
    std::vector<std::vector<rg_attr>> known(nodes.size());
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      for (std::uint32_t i = 0; i < nodes[k].attr_count; ++i)
        for (const rg::op_attributes& o : reference::known_attributes)
          if (o.op == nodes[k].op && o.has(nodes[k].attrs[i].name)) known[k].push_back(nodes[k].attrs[i]);
      nodes[k].attrs = known[k].data();
      nodes[k].attr_count = static_cast<std::uint32_t>(known[k].size());
    }
    return make(plain.graph, setup);
  }
};

// Defect: an op that it lacks is an error of the graph, so that no other executor is asked.
struct blames_the_graph : sound {
  static std::unique_ptr<model> compile(const rg_host*, const parameters&, const rg_graph& graph,
                                        const rg_model_setup& setup) {
    try {
      return make(graph, setup);
    } catch (const rg::error& e) {
      throw rg::error(RG_E_CONFIG, e.what());
    }
  }
};

// No defect: it lacks an op.
struct has_no_convolution : sound {
  static std::unique_ptr<model> compile(const rg_host*, const parameters&, const rg_graph& graph,
                                        const rg_model_setup& setup) {
    if (has_op(graph, "conv2d")) throw rg::error(RG_E_UNSUPPORTED, "layer c: it has no op conv2d");
    return make(graph, setup);
  }
};

// No defect: it lacks all ops.
struct has_nothing : sound {
  static std::unique_ptr<model> compile(const rg_host*, const parameters&, const rg_graph&, const rg_model_setup&) {
    throw rg::error(RG_E_UNSUPPORTED, "it has no op dense");
  }
};

// A model with an attribute that no executor knows.
struct dilated {
  struct parameters {};
  void build(rg::network& net, const parameters&) const {
    const rg::value x = net.values("image", {3, 8, 8}), label = net.index("label", 10);
    const auto weight = net.weight("wide.weight", {4, 3, 3, 3}, {.init = RG_INIT_NORMAL, .b = 0.1});
    const rg::value wide = net.node("conv2d", "wide", {x}, {weight},
                                    {{"kernel", 3}, {"stride", 1}, {"padding", 1}, {"dilation", 2}}, {4, 8, 8});
    rg::softmax_cross_entropy(rg::dense(rg::flatten(wide), "classes", 10), label);
  }
};

} // namespace

RG_PLUGIN("broken_executors", "1.0", rg::executor<sound>("runs_the_reference", "nothing wrong: the reference in fp64"),
          rg::executor<five_percent_in_avg_pool>("five_percent_in_avg_pool", "broken: one gradient"),
          rg::executor<initialises_by_its_own_rule>("initialises_by_its_own_rule", "broken: initial values"),
          rg::executor<ignores_attributes>("ignores_attributes", "broken: unknown attributes"),
          rg::executor<blames_the_graph>("blames_the_graph", "broken: the wrong status"),
          rg::executor<has_no_convolution>("has_no_convolution", "nothing wrong: lacks an op"),
          rg::executor<has_nothing>("has_nothing", "nothing wrong: lacks all ops"),
          rg::graph_model<dilated>("dilated", "a convolution with an attribute that no executor knows"))

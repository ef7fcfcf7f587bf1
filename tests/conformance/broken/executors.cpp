// SPDX-License-Identifier: Apache-2.0
//
// Executors that run the reference: a sound one, and some with one defect each.
#include <interpreter.hpp>

#include <attributes.hpp>

#include <regatta/executor.hpp>
#include <regatta/random.hpp>

#include <algorithm>
#include <string_view>

namespace {

// The defects that a model has; those of compile() are functions of the executors below.
struct defects {
  bool too_long = false;  // the gradient of the input of avg_pool is 5 % too long
  bool own_start = false; // initial values are random numbers by a rule of its own
};

class interpreted {
public:
  interpreted(const rg_graph& graph, const defects& d) : defects_(d), reference_(graph) {
    for (std::uint32_t t = graph.tensor_count; t-- > 0;)
      if (graph.tensors[t].kind == RG_TENSOR_DENSE) order_.push_back(t);
    dense_ = static_cast<std::uint32_t>(order_.size());
    for (std::uint32_t t = 0; t < graph.tensor_count; ++t)
      if (graph.tensors[t].kind == RG_TENSOR_STATE) order_.push_back(t);
    if (order_.size() < graph.tensor_count) throw rg::error(RG_E_UNSUPPORTED, "it has no sparse tables");
    for (const std::uint32_t t : order_) tensors_.push_back(graph.tensors[t]);
    for (std::uint32_t k = 0; k < graph.node_count; ++k) ops_.emplace_back(graph.nodes[k].op);
    inputs_.assign(graph.inputs, graph.inputs + graph.input_count);
  }

  rg_model_info describe() {
    rg_model_info info{};
    info.tensor_count = static_cast<std::uint32_t>(tensors_.size());
    info.tensors = tensors_.data();
    info.inputs = inputs_.data();
    info.input_count = static_cast<std::uint32_t>(inputs_.size());
    info.unit = "samples";
    info.layout = "canonical";
    return info;
  }

  void init(std::uint32_t tensor, std::span<const std::uint64_t>, std::uint64_t seed, std::span<float> out) {
    const rg_tensor& t = tensors_[tensor];
    if (!defects_.own_start) return rg::initial_values(t, order_[tensor], 0, seed, out);
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = t.init == RG_INIT_CONSTANT ? static_cast<float>(t.init_a)
                                          : 0.1F * rg::random_normals(seed, i, order_[tensor], rg::stream_init)[0];
  }

  void bind(const rg_model_memory& memory) {
    for (std::uint32_t t = 0; t < memory.tensor_count; ++t) {
      weights_.push_back(rg::weights_of(memory, t));
      gradients_.push_back(rg::gradients_of(memory, t));
    }
  }

  rg_step_result step(const rg_batch& batch, const rg::hooks& hooks) {
    for (std::uint32_t t = 0; t < dense_; ++t) hooks.need(t);
    for (std::size_t t = 0; t < order_.size(); ++t) {
      std::vector<double>& values = reference_.tensors[order_[t]];
      std::copy_n(weights_[t], values.size(), values.begin());
    }
    const reference::batch b = batch_of(batch);
    rg_step_result result{};
    result.loss_sum = reference_.forward(b);
    result.count = batch.samples;
    hooks.backward();
    backward(b);
    for (std::size_t t = 0; t < order_.size(); ++t) {
      const std::vector<double>&values = reference_.tensors[order_[t]], &gradient = reference_.gradients[order_[t]];
      for (std::size_t i = 0; i < values.size(); ++i)
        if (t >= dense_)
          weights_[t][i] = static_cast<float>(values[i]);
        else
          gradients_[t][i] =
              static_cast<float>(gradient[i]) + (batch.flags & RG_BATCH_ACCUMULATE ? gradients_[t][i] : 0.0F);
    }
    if (dense_ && batch.flags & RG_BATCH_LAST) hooks.ready(dense_ - 1);
    return result;
  }

private:
  reference::batch batch_of(const rg_batch& batch) const {
    reference::batch b;
    b.samples = batch.samples;
    b.seed = batch.seed;
    b.step = batch.step;
    b.first_sample = batch.first_sample;
    b.global_samples = batch.global_samples;
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
      std::size_t count = batch.samples;
      for (std::uint32_t d = 0; d < inputs_[k].ndim; ++d) count *= static_cast<std::size_t>(inputs_[k].shape[d]);
      if (inputs_[k].type == RG_F32) {
        const auto* values = static_cast<const float*>(batch.inputs[k]);
        b.inputs.emplace_back(values, values + count);
      } else {
        const auto* values = static_cast<const std::int32_t*>(batch.inputs[k]);
        b.inputs.emplace_back(values, values + count);
      }
    }
    return b;
  }

  void backward(const reference::batch& b) {
    reference_.clear_gradients();
    for (double& g : reference_.value_gradients.back()) g = 1.0 / static_cast<double>(b.global_samples);
    for (std::size_t k = ops_.size(); k-- > 0;) {
      reference_.backward_node(k, b);
      if (defects_.too_long && ops_[k] == "avg_pool")
        for (double& g : reference_.value_gradients[reference_.inputs_of(k)[0]]) g *= 1.05;
    }
  }

  defects defects_;
  reference::interpreter reference_;
  std::vector<std::uint32_t> order_; // from tensors of the model to those of the graph
  std::uint32_t dense_ = 0;          // of order_, which come first
  std::vector<rg_tensor> tensors_;
  std::vector<rg_input> inputs_;
  std::vector<std::string> ops_; // by node
  std::vector<float*> weights_, gradients_;
};

bool has_op(const rg_graph& graph, std::string_view op) {
  return std::any_of(graph.nodes, graph.nodes + graph.node_count,
                     [&](const rg_node& n) { return std::string_view(n.op) == op; });
}

void refuse_unknown_ops(const rg_graph& graph) {
  for (std::uint32_t k = 0; k < graph.node_count; ++k)
    if (std::none_of(std::begin(reference::known_attributes), std::end(reference::known_attributes),
                     [&](const rg::op_attributes& o) { return o.op == graph.nodes[k].op; }))
      throw rg::error(RG_E_UNSUPPORTED, std::string("it has no op ") + graph.nodes[k].op);
}

// A sound executor, from which the others are derived. They replace check() or `defect`.
struct sound {
  struct parameters {};
  using model = interpreted;
  static constexpr std::uint32_t memory = RG_MEMORY_HOST;
  static std::unique_ptr<model> compile(const rg_host*, const parameters&, const rg_graph& graph,
                                        const rg_model_setup& setup) {
    return make(graph, setup, {});
  }
  static std::unique_ptr<model> make(const rg_graph& graph, const rg_model_setup& setup, const defects& d) {
    if (setup.precision != RG_F32) throw rg::error(RG_E_UNSUPPORTED, "it computes in fp32");
    refuse_unknown_ops(graph);
    return std::make_unique<model>(graph, d);
  }
};

// Defect: the gradient of one op.
struct five_percent_in_avg_pool : sound {
  static std::unique_ptr<model> compile(const rg_host*, const parameters&, const rg_graph& graph,
                                        const rg_model_setup& setup) {
    return make(graph, setup, {.too_long = true});
  }
};

// Defect: the weights that a model starts with.
struct initialises_by_its_own_rule : sound {
  static std::unique_ptr<model> compile(const rg_host*, const parameters&, const rg_graph& graph,
                                        const rg_model_setup& setup) {
    return make(graph, setup, {.own_start = true});
  }
};

// Defect: attributes that it does not know do not matter to it.
struct ignores_attributes : sound {
  static std::unique_ptr<model> compile(const rg_host*, const parameters&, const rg_graph& graph,
                                        const rg_model_setup& setup) {
    std::vector<rg_node> nodes(graph.nodes, graph.nodes + graph.node_count);
    std::vector<std::vector<rg_attr>> known(nodes.size());
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      for (std::uint32_t i = 0; i < nodes[k].attr_count; ++i)
        for (const rg::op_attributes& o : reference::known_attributes)
          if (o.op == nodes[k].op && o.has(nodes[k].attrs[i].name)) known[k].push_back(nodes[k].attrs[i]);
      nodes[k].attrs = known[k].data();
      nodes[k].attr_count = static_cast<std::uint32_t>(known[k].size());
    }
    rg_graph without = graph;
    without.nodes = nodes.data();
    return make(without, setup, {});
  }
};

// Defect: an op that it lacks is an error of the graph, so that no other executor is asked.
struct blames_the_graph : sound {
  static std::unique_ptr<model> compile(const rg_host*, const parameters&, const rg_graph& graph,
                                        const rg_model_setup& setup) {
    try {
      return make(graph, setup, {});
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
    return make(graph, setup, {});
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

// SPDX-License-Identifier: Apache-2.0
//
// Executors that run the reference, and from which executors with one mistake are derived.
#pragma once

#include <attributes.hpp>
#include <interpreter.hpp>

#include <regatta/executor.hpp>
#include <regatta/random.hpp>

#include <algorithm>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace broken {

// A model that computes with the reference. Broken ones replace functions.
class interpreted {
public:
  virtual ~interpreted() = default;
  explicit interpreted(const rg_graph& graph) : reference_(graph) {
    for (std::uint32_t t = graph.tensor_count; t-- > 0;)
      if (graph.tensors[t].kind == RG_TENSOR_DENSE) order_.push_back(t);
    dense_ = static_cast<std::uint32_t>(order_.size());
    for (std::uint32_t t = 0; t < graph.tensor_count; ++t)
      if (graph.tensors[t].kind == RG_TENSOR_STATE) order_.push_back(t);
    if (order_.size() < graph.tensor_count) throw rg::error(RG_E_UNSUPPORTED, "it has no sparse tables");
    for (const std::uint32_t t : order_) tensors_.push_back(graph.tensors[t]);
    for (std::uint32_t k = 0; k < graph.node_count; ++k) {
      ops_.emplace_back(graph.nodes[k].op);
      weights_of_.emplace_back(graph.nodes[k].weights, graph.nodes[k].weights + graph.nodes[k].weight_count);
    }
    unit_ = graph.unit;
    tokens_input_ = graph.tokens_input;
    inputs_.assign(graph.inputs, graph.inputs + graph.input_count);
  }

  rg_model_info describe() {
    rg_model_info info{};
    info.tensor_count = static_cast<std::uint32_t>(tensors_.size());
    info.tensors = tensors_.data();
    info.inputs = inputs_.data();
    info.input_count = static_cast<std::uint32_t>(inputs_.size());
    info.unit = unit_.c_str();
    info.tokens_input = tokens_input_;
    info.layout = "canonical";
    info.metric_sums = 2; // right, counted
    info.metric = "top1";
    info.flops_per_sample = flops();
    return info;
  }

  void init(std::uint32_t tensor, std::span<const std::uint64_t>, std::uint64_t seed, std::span<float> out) {
    start(tensors_[tensor], order_[tensor], seed, out);
  }

  void bind(const rg_model_memory& memory) {
    for (std::uint32_t t = 0; t < memory.tensor_count; ++t) {
      weights_.push_back(rg::weights_of(memory, t));
      gradients_.push_back(rg::gradients_of(memory, t));
    }
  }

  rg_step_result step(const rg_batch& batch, const rg::hooks& hooks) {
    for (std::uint32_t t = 0; t < dense_; ++t) hooks.need(t);
    read_weights();
    const reference::batch b = batch_of(batch);
    rg_step_result result{};
    result.loss_sum = forward(b);
    result.count = batch.samples;
    begin_backward(hooks);
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
    if (dense_ && batch.flags & RG_BATCH_LAST) end_backward(hooks);
    return result;
  }

  void evaluate(const rg_batch& batch, std::span<double> sums) {
    read_weights();
    const reference::batch b = batch_of(batch);
    reference_.forward(b, false);
    const std::vector<std::uint32_t>& from = reference_.inputs_of(ops_.size() - 1);
    if (from.size() != 2 || ops_.back() != "softmax_cross_entropy") return;
    const std::vector<double>& logits = reference_.values[from[0]];
    const std::size_t classes = logits.size() / b.samples;
    for (std::size_t i = 0; i < batch.valid; ++i) {
      const std::span<const double> row(logits.data() + i * classes, classes);
      sums[0] += static_cast<double>(predicted(row)) == reference_.values[from[1]][i];
      sums[1] += 1;
    }
  }
  double metric(std::span<const double> sums) { return sums[1] > 0 ? sums[0] / sums[1] : 0; }

protected:
  virtual double flops() const { return 0; } // unknown
  virtual void start(const rg_tensor& t, std::uint32_t number, std::uint64_t seed, std::span<float> out) {
    rg::initial_values(t, number, 0, seed, out);
  }
  virtual void read_weights() {
    for (std::size_t t = 0; t < order_.size(); ++t) {
      std::vector<double>& values = reference_.tensors[order_[t]];
      std::copy_n(weights_[t], values.size(), values.begin());
    }
  }
  virtual void begin_backward(const rg::hooks& hooks) { hooks.backward(); }
  virtual void end_backward(const rg::hooks& hooks) { hooks.ready(dense_ - 1); }
  virtual double forward(const reference::batch& b) { return reference_.forward(b); }
  virtual void backward_node(std::size_t k, const reference::batch& b) { reference_.backward_node(k, b); }
  virtual std::size_t predicted(std::span<const double> logits) {
    return static_cast<std::size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }

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
    for (std::size_t k = ops_.size(); k-- > 0;) backward_node(k, b);
  }

  reference::interpreter reference_;
  std::vector<std::uint32_t> order_; // from tensors of the model to those of the graph
  std::uint32_t dense_ = 0;          // of order_, which come first
  std::vector<rg_tensor> tensors_;
  std::vector<rg_input> inputs_;
  std::vector<std::string> ops_;                       // by node
  std::vector<std::vector<std::uint32_t>> weights_of_; // by node: numbers of the graph's tensors
  std::string unit_;
  std::uint32_t tokens_input_ = 0;
  std::vector<float*> weights_, gradients_;
};

inline bool has_op(const rg_graph& graph, std::string_view op) {
  return std::any_of(graph.nodes, graph.nodes + graph.node_count,
                     [&](const rg_node& n) { return std::string_view(n.op) == op; });
}

inline void refuse_unknown_ops(const rg_graph& graph) {
  for (std::uint32_t k = 0; k < graph.node_count; ++k)
    if (std::none_of(std::begin(reference::known_attributes), std::end(reference::known_attributes),
                     [&](const rg::op_attributes& o) { return o.op == graph.nodes[k].op; }))
      throw rg::error(RG_E_UNSUPPORTED, std::string("it has no op ") + graph.nodes[k].op);
}

// Copies of the graph's structs in arrays of those of this interface, which may be shorter.
struct plain_graph {
  explicit plain_graph(const rg_graph& g) : graph(rg::copy_versioned(g)) {
    for (std::uint32_t k = 0; k < g.node_count; ++k) nodes.push_back(rg::copy_versioned(rg::at_stride(g.nodes, k)));
    for (rg_node& n : nodes) {
      auto& own = attributes.emplace_back();
      for (std::uint32_t i = 0; i < n.attr_count; ++i) own.push_back(rg::copy_versioned(rg::at_stride(n.attrs, i)));
      n.attrs = own.data();
    }
    for (std::uint32_t t = 0; t < g.tensor_count; ++t)
      tensors.push_back(rg::copy_versioned(rg::at_stride(g.tensors, t)));
    for (std::uint32_t i = 0; i < g.input_count; ++i) inputs.push_back(rg::copy_versioned(rg::at_stride(g.inputs, i)));
    graph.nodes = nodes.data();
    graph.tensors = tensors.data();
    graph.inputs = inputs.data();
  }
  std::vector<rg_node> nodes;
  std::deque<std::vector<rg_attr>> attributes;
  std::vector<rg_tensor> tensors;
  std::vector<rg_input> inputs;
  rg_graph graph;
};

// A sound executor whose models are M, from which the others are derived. They replace M or compile().
template <class M> struct runs {
  struct parameters {};
  using model = M;
  static constexpr std::uint32_t memory = RG_MEMORY_HOST;
  static std::unique_ptr<model> compile(const rg_host*, const parameters&, const rg_graph& graph,
                                        const rg_model_setup& setup) {
    return make(graph, setup);
  }
  static std::unique_ptr<model> make(const rg_graph& graph, const rg_model_setup& setup) {
    if (setup.precision != RG_F32) throw rg::error(RG_E_UNSUPPORTED, "it computes in fp32");
    refuse_unknown_ops(plain_graph(graph).graph);
    return std::make_unique<model>(plain_graph(graph).graph);
  }
};
using sound = runs<interpreted>;

} // namespace broken

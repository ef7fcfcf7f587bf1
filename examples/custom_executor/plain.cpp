// SPDX-License-Identifier: Apache-2.0
//
// An executor: it compiles a graph of layers into a model that computes in plain loops. It has an op of its own,
// leaky_relu, that Regatta's executors lack, and leaky_mlp below is a model with that op. A model with an op that this
// executor lacks goes to the next executor.
#include <regatta/executor.hpp>

#include <algorithm>
#include <cmath>
#include <string>

namespace {

// The values of a node and, in the backward pass, their gradients: `size` elements for each sample.
struct activations {
  std::size_t size = 0;
  std::vector<float> values, gradients;
};

// A weight and its gradient, in the engine's memory; null until the model is bound.
struct weight {
  float *values = nullptr, *gradients = nullptr;
};

// A node of the graph. backward() adds to the gradients of its inputs and weights.
class layer {
public:
  layer(const rg_node& node, std::vector<activations>& nodes, activations& out) : out_(out) {
    for (std::uint32_t i = 0; i < node.input_count; ++i) in_.push_back(&nodes[node.inputs[i]]);
  }
  virtual ~layer() = default;
  virtual void forward(std::size_t samples) = 0;
  virtual void backward(std::size_t samples) = 0;

protected:
  std::vector<activations*> in_;
  activations& out_;
};

// y = W x + b, at each position of a sequence where the input is one. W is [outputs, inputs].
class dense : public layer {
public:
  dense(const rg_node& node, std::vector<activations>& nodes, activations& out, const rg_graph& graph,
        std::vector<weight>& weights)
      : layer(node, nodes, out), weight_(weights[node.weights[0]]),
        bias_(node.weight_count > 1 ? &weights[node.weights[1]] : nullptr) {
    const rg_tensor matrix = rg::copy_versioned(rg::at_stride(graph.tensors, node.weights[0]));
    outputs_ = static_cast<std::size_t>(matrix.shape[0]);
    inputs_ = static_cast<std::size_t>(matrix.shape[1]);
  }
  void forward(std::size_t samples) override {
    for (std::size_t row = 0; row < rows(samples); ++row)
      for (std::size_t o = 0; o < outputs_; ++o) {
        const float *x = &in_[0]->values[row * inputs_], *w = weight_.values + o * inputs_;
        float y = bias_ ? bias_->values[o] : 0.0F;
        for (std::size_t i = 0; i < inputs_; ++i) y += w[i] * x[i];
        out_.values[row * outputs_ + o] = y;
      }
  }
  void backward(std::size_t samples) override {
    for (std::size_t row = 0; row < rows(samples); ++row)
      for (std::size_t o = 0; o < outputs_; ++o) {
        const float *x = &in_[0]->values[row * inputs_], *w = weight_.values + o * inputs_;
        float *dx = &in_[0]->gradients[row * inputs_], *dw = weight_.gradients + o * inputs_;
        const float dy = out_.gradients[row * outputs_ + o];
        for (std::size_t i = 0; i < inputs_; ++i) dw[i] += dy * x[i];
        for (std::size_t i = 0; i < inputs_; ++i) dx[i] += dy * w[i];
        if (bias_) bias_->gradients[o] += dy;
      }
  }

private:
  std::size_t rows(std::size_t samples) const { return samples * out_.size / outputs_; }
  const weight& weight_;
  const weight* bias_;
  std::size_t outputs_, inputs_;
};

// y = x for x > 0, else slope * x. relu is the slope 0, flatten the slope 1.
class leaky_relu : public layer {
public:
  leaky_relu(const rg_node& node, std::vector<activations>& nodes, activations& out, float slope)
      : layer(node, nodes, out), slope_(slope) {}
  void forward(std::size_t samples) override {
    for (std::size_t i = 0; i < samples * out_.size; ++i)
      out_.values[i] = in_[0]->values[i] * (in_[0]->values[i] > 0 ? 1 : slope_);
  }
  void backward(std::size_t samples) override {
    for (std::size_t i = 0; i < samples * out_.size; ++i)
      in_[0]->gradients[i] += out_.gradients[i] * (in_[0]->values[i] > 0 ? 1 : slope_);
  }

private:
  float slope_;
};

// The loss of logits and a label: its values are one loss for each sample.
class softmax_cross_entropy : public layer {
public:
  using layer::layer;
  void forward(std::size_t samples) override {
    const std::size_t classes = in_[0]->size;
    for (std::size_t s = 0; s < samples; ++s) {
      const float* logits = &in_[0]->values[s * classes];
      out_.values[s] = log_of_sum(logits, classes) - logits[label(s)];
    }
  }
  void backward(std::size_t samples) override {
    const std::size_t classes = in_[0]->size;
    for (std::size_t s = 0; s < samples; ++s) {
      const float* logits = &in_[0]->values[s * classes];
      float* gradients = &in_[0]->gradients[s * classes];
      const float log_sum = log_of_sum(logits, classes);
      for (std::size_t c = 0; c < classes; ++c) gradients[c] += out_.gradients[s] * std::exp(logits[c] - log_sum);
      gradients[label(s)] -= out_.gradients[s];
    }
  }

private:
  static float log_of_sum(const float* logits, std::size_t classes) {
    const float largest = *std::max_element(logits, logits + classes); // so that no exponential overflows
    float sum = 0;
    for (std::size_t c = 0; c < classes; ++c) sum += std::exp(logits[c] - largest);
    return largest + std::log(sum);
  }
  std::size_t label(std::size_t sample) const { return static_cast<std::size_t>(in_[1]->values[sample]); }
};

// A compiled graph. It has the functions of a model that computes its steps itself
// (custom_model/linear_regression.cpp).
class compiled {
public:
  compiled(const rg_graph& graph, const rg_model_setup& setup)
      : batch_(static_cast<std::size_t>(setup.batch)), nodes_(graph.node_count), weights_(graph.tensor_count) {
    for (std::uint32_t k = 0; k < graph.input_count; ++k)
      inputs_.push_back(rg::copy_versioned(rg::at_stride(graph.inputs, k)));
    for (std::uint32_t k = 0; k < graph.node_count; ++k) add(graph, k);
    // The graph's tensors are in the order of their first use, a model's in the order in which gradients become ready.
    for (std::uint32_t t = graph.tensor_count; t-- > 0;)
      tensors_.push_back(rg::copy_versioned(rg::at_stride(graph.tensors, t)));
    unit_ = graph.unit;
  }

  rg_model_info describe() {
    auto info = rg::make_versioned<rg_model_info>();
    info.tensors = tensors_.data();
    info.tensor_count = static_cast<std::uint32_t>(tensors_.size());
    info.inputs = inputs_.data();
    info.input_count = static_cast<std::uint32_t>(inputs_.size());
    info.unit = unit_.c_str();
    info.layout = "canonical";
    return info;
  }

  void init(std::uint32_t tensor, std::span<const std::uint64_t>, std::uint64_t seed, std::span<float> out) {
    rg::initial_values(tensors_[tensor], in_graph(tensor), 0, seed, out);
  }

  // Activations are allocated here and not in the constructor, which also runs where only shapes are asked for.
  void bind(const rg_model_memory& memory) {
    for (std::uint32_t t = 0; t < memory.tensor_count; ++t)
      weights_[in_graph(t)] = {rg::weights_of(memory, t), rg::gradients_of(memory, t)};
    for (activations& a : nodes_) {
      a.values.resize(batch_ * a.size);
      a.gradients.resize(batch_ * a.size);
    }
  }

  rg_step_result step(const rg_batch& batch, const rg::hooks& hooks) {
    for (std::uint32_t t = 0; t < tensors_.size(); ++t) {
      hooks.need(t);
      if (!(batch.flags & RG_BATCH_ACCUMULATE))
        std::fill_n(weights_[in_graph(t)].gradients, rg::storage_of(tensors_[t]), 0.0F);
    }
    read_inputs(batch);
    for (const auto& l : layers_) l.computes->forward(batch_);
    rg_step_result result{};
    for (const float loss : nodes_.back().values) result.loss_sum += loss;
    result.count = batch.samples;

    hooks.backward();
    for (activations& a : nodes_) std::fill(a.gradients.begin(), a.gradients.end(), 0.0F);
    // Gradients are divided by the global batch, so that strategies only have to add them.
    std::fill(nodes_.back().gradients.begin(), nodes_.back().gradients.end(),
              1.0F / static_cast<float>(batch.global_samples));
    for (std::size_t l = layers_.size(); l-- > 0;) {
      layers_[l].computes->backward(batch_);
      // A weight that several layers share is final after the first of them, whose backward pass comes last.
      if (batch.flags & RG_BATCH_LAST && layers_[l].first_use_of > 0) hooks.ready(in_graph(layers_[l].tensors_before));
    }
    return result;
  }

private:
  struct compiled_layer {
    std::unique_ptr<layer> computes;
    std::uint32_t tensors_before, first_use_of; // tensors that earlier layers use first, and that this one uses first
  };

  // Converts between the numbers of a tensor in the graph and in the model.
  std::uint32_t in_graph(std::uint32_t tensor) const {
    return static_cast<std::uint32_t>(weights_.size()) - 1 - tensor;
  }

  void add(const rg_graph& graph, std::uint32_t k) {
    const rg_node node = rg::copy_versioned(rg::at_stride(graph.nodes, k));
    const std::string op = node.op;
    nodes_[k].size = static_cast<std::size_t>(rg::elements({node.shape, node.shape + node.ndim}));
    std::unique_ptr<layer> l;
    if (op == "input") return;
    if (op == "dense") l = std::make_unique<dense>(node, nodes_, nodes_[k], graph, weights_);
    if (op == "flatten") l = std::make_unique<leaky_relu>(node, nodes_, nodes_[k], 1.0F);
    if (op == "relu") l = std::make_unique<leaky_relu>(node, nodes_, nodes_[k], 0.0F);
    if (op == "leaky_relu")
      l = std::make_unique<leaky_relu>(node, nodes_, nodes_[k], number_of(node, "negative_slope"));
    if (op == "softmax_cross_entropy") l = std::make_unique<softmax_cross_entropy>(node, nodes_, nodes_[k]);
    if (!l)
      throw rg::error(RG_E_UNSUPPORTED, "layer " + std::string(node.name) + ": the executor plain has no op " + op);
    const std::uint32_t before = seen_;
    for (std::uint32_t w = 0; w < node.weight_count; ++w) seen_ = std::max(seen_, node.weights[w] + 1);
    layers_.push_back({std::move(l), before, seen_ - before});
  }

  static float number_of(const rg_node& node, const std::string& attribute) {
    for (std::uint32_t i = 0; i < node.attr_count; ++i)
      if (const rg_attr a = rg::copy_versioned(rg::at_stride(node.attrs, i)); a.name == attribute)
        return static_cast<float>(a.number);
    throw rg::error(RG_E_CONFIG, "layer " + std::string(node.name) + ": it has no attribute " + attribute);
  }

  void read_inputs(const rg_batch& batch) {
    for (std::size_t k = 0; k < inputs_.size(); ++k)
      if (inputs_[k].type == RG_F32)
        std::copy_n(static_cast<const float*>(batch.inputs[k]), nodes_[k].values.size(), nodes_[k].values.begin());
      else
        std::copy_n(static_cast<const std::int32_t*>(batch.inputs[k]), nodes_[k].values.size(),
                    nodes_[k].values.begin());
  }

  std::size_t batch_;
  std::vector<activations> nodes_; // by node of the graph
  std::vector<weight> weights_;    // by tensor of the graph
  std::vector<compiled_layer> layers_;
  std::uint32_t seen_ = 0; // tensors that a layer uses
  std::vector<rg_tensor> tensors_;
  std::vector<rg_input> inputs_;
  std::string unit_;
};

// The executor. Under [main], once for each model.
struct plain {
  struct parameters {};
  using model = compiled;
  static constexpr std::uint32_t memory = RG_MEMORY_HOST;

  // If compile() refuses a graph with RG_E_UNSUPPORTED, the engine offers the whole graph to the next executor.
  static std::unique_ptr<model> compile(const rg_host*, const parameters&, const rg_graph& graph,
                                        const rg_model_setup& setup) {
    if (setup.precision != RG_F32) throw rg::error(RG_E_UNSUPPORTED, "the executor plain computes in fp32 only");
    for (std::uint32_t t = 0; t < graph.tensor_count; ++t)
      if (rg::at_stride(graph.tensors, t).kind != RG_TENSOR_DENSE)
        throw rg::error(RG_E_UNSUPPORTED, "the executor plain has neither sparse tables nor running statistics");
    // An attribute that this code does not read would change the network: it must be refused.
    static constexpr rg::op_attributes known[] = {{"input", {}},
                                                  {"dense", {}},
                                                  {"flatten", {}},
                                                  {"relu", {}},
                                                  {"leaky_relu", {"negative_slope"}},
                                                  {"softmax_cross_entropy", {}}};
    rg::refuse_unknown_attributes(graph, known);
    return std::make_unique<model>(graph, setup);
  }
};

// A model with the op. Other executors refuse it: "no op leaky_relu".
struct leaky_mlp {
  struct parameters {
    std::int64_t width = 32;
    double negative_slope = 0.01;
  };
  static constexpr auto fields = rg::fields(
      rg::field("width", &parameters::width, "units of the hidden layers").range(1, 65536),
      rg::field("negative_slope", &parameters::negative_slope, "slope of the activation below 0").range(0, 1));
  void build(rg::network& net, const parameters& p) const {
    rg::value x = net.values("image", {1, 8, 8});
    const rg::value label = net.index("label", 10);
    x = rg::flatten(x);
    for (const char* name : {"hidden1", "hidden2"}) {
      x = rg::dense(x, name, p.width);
      x = net.node("leaky_relu", "", {x}, {}, {{"negative_slope", p.negative_slope}}, x.dims());
    }
    rg::softmax_cross_entropy(rg::dense(x, "output", 10, {.gain = 1}), label);
  }
};

} // namespace

RG_PLUGIN("custom_executor", "1.0", rg::executor<plain>("plain", "example: plain loops, and an op of its own"),
          rg::graph_model<leaky_mlp>("leaky_mlp", "example: a model with that op"))

// SPDX-License-Identifier: Apache-2.0
//
// Builds networks of layers. A model describes its network once, as a list of nodes (ext/graph.h); an executor compiles
// the list for a device. The functions here compute nothing and need the standard library only. Each layer adds a node,
// and its weights, to the network of its input, and returns the node's output. Layers throw rg::error (RG_E_CONFIG),
// naming the layer, if a shape or an option does not fit. `name` must differ for layers with weights.
//
//   void build(rg::network& net, const parameters& p) const {
//     auto image = net.values("image", {1, 28, 28});
//     auto label = net.index("label", 10);
//     auto x = rg::relu(rg::dense(rg::flatten(image), "fc1", 128)); // [128]
//     rg::softmax_cross_entropy(rg::dense(x, "fc2", 10), label);
//   }
//
// Shapes are those of one sample, and canonical: channels, height, width. An op has a name, inputs, weights in a fixed
// order, and attributes, which are numbers here; an op of one's own may have lists and texts, too (network::node()). An
// executor implements the ops of this table:
//
//   op                     inputs          weights, in order [shape]          attributes               output
//   ---------------------  --------------  ---------------------------------  -----------------------  ---------------
//   input                  -               -                                  -                        rg_input.shape
//   conv2d                 x [C,H,W]       weight [O,C,kernel,kernel]         kernel, stride, padding  [O,H',W']
//                                          bias [O], may be left out
//   dense                  x [I] or [T,I]  weight [O,I]                       -                        [O] or [T,O]
//                                          bias [O], may be left out
//   batch_norm             x [C,...]       scale [C], bias [C],               epsilon, momentum        as x
//                                          mean [C], variance [C] (states)
//   sync_batch_norm        as batch_norm   as batch_norm                      epsilon, momentum        as x
//   relu                   x               -                                  -                        as x
//   dropout                x               -                                  p, layer                 as x
//   max_pool               x [C,H,W]       -                                  kernel, stride, padding  [C,H',W']
//   avg_pool               x [C,H,W]       -                                  kernel, stride, padding  [C,H',W']
//   global_avg_pool        x [C,H,W]       -                                  -                        [C]
//   sigmoid                x               -                                  -                        as x
//   scale_channels         x [C,H,W], s [C] -                                 -                        as x
//   add                    a, b            -                                  -                        as a
//   flatten                x               -                                  -                        [product of x]
//   softmax_cross_entropy  logits [K],     -                                  -                        []
//                          label index
//   sum_of_losses          losses          -                                  -                        []
//
//   H' = (H + 2 padding - kernel) / stride + 1, rounded down; W' in the same way.
// regatta/layers_sequence.hpp has the layers for sequences and their ops, regatta/layers_sparse.hpp those for sparse
// tables.
//
//   conv2d     cross-correlation; the padding is zeros.
//   batch_norm over the batch and all dimensions except the channels. Training uses the batch's biased variance and
//              updates state = momentum * state + (1 - momentum) * batch's; evaluation uses the states.
//   sync_batch_norm  batch_norm over the batches of all workers: each worker normalises by the mean and variance of the
//              global batch (with gradient accumulation, of the micro-batches that the workers compute at that time).
//   dropout    zeroes an element with probability p and scales the rest by 1 / (1 - p); identity in evaluation.
//              Element e (canonical) of the sample with index s in the global batch of step t is kept if
//              16-bit half e % 8 of random_bits(derive_seed(seed, t, layer, stream_dropout), s, e / 8) is at least
//              round(p * 65536); halves 2k and 2k + 1 are the lower and the upper half of word k.
//   max_pool   padding is never the maximum. The gradient goes to the first of equal maxima.
//   avg_pool   divides by the number of elements that are not padding.
//   scale_channels  multiplies each channel of x by its factor in s, separately for each sample.
//   softmax_cross_entropy  the loss is -log softmax(logits)[label], the metric "top1".
//   sum_of_losses          divides each loss by its own count, and adds them; the metric is that of the first loss.
#pragma once

#include <regatta/description.hpp>
#include <regatta/ext/graph.h>
#include <regatta/plugin.hpp>

#include <cmath>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rg {

class network;

// The output of a node. Cheap to copy; valid as long as its network.
class value {
public:
  value(network& net, std::uint32_t node) : net_(&net), node_(node) {}
  network& net() const noexcept { return *net_; }
  std::uint32_t node() const noexcept { return node_; }
  const shape& dims() const;

private:
  network* net_;
  std::uint32_t node_;
};

// How a weight is initialised and trained.
struct weight_options {
  std::uint32_t kind = RG_TENSOR_DENSE;
  std::uint32_t init = RG_INIT_CONSTANT;
  double a = 0, b = 0;      // by init: constant a; uniform from a to b; normal with mean a and standard deviation b
  float decay = 1;          // factor on the optimizer's weight decay; 0: no decay
  float lr_scale = 1;       // factor on the learning rate
  bool compressible = true; // strategies may compress the gradient
};

// An attribute of a node: a number, a list of numbers or a text. `name` is kept by pointer: use a literal.
//
//   net.node("vendor.shift", "", {x}, {}, {{"by", 3}, {"axes", {1, 2}}, {"border", "wrap"}}, x.dims());
class attribute {
public:
  attribute(const char* name, double number) : name_(name), number_(number) {}
  attribute(const char* name, std::initializer_list<double> numbers) : attribute(name, std::vector<double>(numbers)) {}
  attribute(const char* name, std::vector<double> numbers)
      : name_(name), numbers_(std::move(numbers)), is_list_(true) {}
  attribute(const char* name, std::string text) : name_(name), text_(std::move(text)), is_text_(true) {}

  // Returns the attribute for the C ABI; valid as long as this object stays where it is.
  rg_attr get() const noexcept {
    auto a = make_versioned<rg_attr>();
    a.name = name_;
    a.number = number_;
    a.count = static_cast<std::uint32_t>(numbers_.size());
    if (is_list_) a.numbers = numbers_.empty() ? &number_ : numbers_.data(); // not null, also of an empty list
    if (is_text_) a.text = text_.c_str();
    return a;
  }

private:
  const char* name_;
  double number_ = 0;
  std::vector<double> numbers_;
  std::string text_;
  bool is_list_ = false, is_text_ = false;
};

// Attributes: {{"kernel", 3}, {"axes", {1, 2}}}, or a vector.
class attribute_list {
public:
  attribute_list() = default;
  attribute_list(std::initializer_list<attribute> all) : all_(all) {}
  attribute_list(std::vector<attribute> all) : all_(std::move(all)) {}
  attribute_list(const std::vector<std::pair<const char*, double>>& numbers) {
    for (const auto& [name, number] : numbers) all_.emplace_back(name, number);
  }
  std::vector<attribute> take() { return std::move(all_); }

private:
  std::vector<attribute> all_;
};

// [main] A network under construction. Throws rg::error (RG_E_CONFIG) for a shape of more than RG_MAX_DIMS dimensions
// and for an input that comes after another node; the layers below check shapes.
class network {
public:
  network() = default;
  network(const network&) = delete;
  network& operator=(const network&) = delete;

  // Sets the plural name of a sample: "images", "words".
  void unit(std::string name) { unit_ = std::move(name); }
  // Names the input whose indices are the tokens of a sample, by which throughput is counted; index 0 is padding, and
  // is not counted.
  void tokens(value input) { tokens_input_ = input.node() + 1; }

  // Inputs must be added before all other nodes. Adds an input of numbers; `dims` is the shape of one sample.
  value values(std::string name, const shape& dims) {
    described_.values(name, dims);
    return input(std::move(name), dims);
  }
  // Adds an input of one integer per sample, from 0 to range - 1.
  value index(std::string name, std::int64_t range) { return indices(std::move(name), {}, range); }
  // Adds an input of integers, from 0 to range - 1, of shape `dims` per sample: tokens.
  value indices(std::string name, const shape& dims, std::int64_t range) {
    described_.indices(name, dims, range);
    return input(std::move(name), dims);
  }

  // Adds a weight and returns its number, by which several nodes can share it. `name` must be unique in the network.
  std::uint32_t weight(std::string name, const shape& dims, const weight_options& options) {
    const std::uint32_t number = described_.dense(std::move(name), dims);
    rg_tensor& t = described_.tensor(number);
    t.kind = options.kind;
    t.compressible = options.compressible;
    t.decay = options.decay;
    t.lr_scale = options.lr_scale;
    t.init = options.init;
    t.init_a = options.a;
    t.init_b = options.b;
    return number;
  }

  // Returns the shape of weight `number`, which weight() has returned.
  shape weight_dims(std::uint32_t number) const {
    const rg_tensor& t = described_.tensors()[number];
    return {t.shape, t.shape + t.ndim};
  }

  // Adds a node without checking it; all layers below call it. An empty name becomes the name of the op and a number.
  // `op` and the names of attributes are kept by pointer: use literals. `dims`: shape of the output for one sample.
  value node(const char* op, std::string name, const std::vector<value>& inputs, std::vector<std::uint32_t> weights,
             attribute_list attributes, shape dims) {
    auto& n = nodes_.emplace_back();
    n.op = op;
    n.name = name.empty() ? op + std::to_string(nodes_.size()) : std::move(name);
    for (const auto& v : inputs) n.inputs.push_back(v.node());
    n.weights = std::move(weights);
    n.owned_attributes = attributes.take();
    for (const attribute& a : n.owned_attributes) n.attributes.push_back(a.get());
    n.dims = std::move(dims);
    return {*this, static_cast<std::uint32_t>(nodes_.size() - 1)};
  }

  const shape& dims(value v) const { return nodes_[v.node()].dims; }
  // Returns a new number for a layer that draws random numbers, the attribute `layer` of its op.
  std::uint32_t next_random_layer() noexcept { return random_layers_++; }

  // Returns the network for the C ABI; valid until the network changes, graph() is called again or it is destroyed.
  const rg_graph* graph() {
    flat_.clear();
    for (const auto& n : nodes_) {
      auto f = make_versioned<rg_node>();
      f.op = n.op;
      f.name = n.name.c_str();
      f.inputs = n.inputs.data();
      f.weights = n.weights.data();
      f.attrs = n.attributes.data();
      f.input_count = static_cast<std::uint32_t>(n.inputs.size());
      f.weight_count = static_cast<std::uint32_t>(n.weights.size());
      f.attr_count = static_cast<std::uint32_t>(n.attributes.size());
      f.ndim = static_cast<std::uint32_t>(n.dims.size());
      f.shape = n.dims.data();
      flat_.push_back(f);
    }
    graph_ = make_versioned<rg_graph>();
    graph_.nodes = flat_.data();
    graph_.tensors = described_.tensors().data();
    graph_.inputs = described_.inputs().data();
    graph_.node_count = static_cast<std::uint32_t>(flat_.size());
    graph_.tensor_count = static_cast<std::uint32_t>(described_.tensors().size());
    graph_.input_count = static_cast<std::uint32_t>(described_.inputs().size());
    graph_.unit = unit_.c_str();
    graph_.tokens_input = tokens_input_;
    return &graph_;
  }

private:
  struct node_data {
    const char* op;
    std::string name;
    std::vector<std::uint32_t> inputs, weights;
    std::vector<attribute> owned_attributes;
    std::vector<rg_attr> attributes; // of owned_attributes
    shape dims;
  };

  value input(std::string name, const shape& dims) {
    if (described_.inputs().size() != nodes_.size() + 1)
      throw error(RG_E_CONFIG, name + ": inputs come before all other nodes");
    return node("input", std::move(name), {}, {}, {}, dims);
  }

  description described_;
  std::deque<node_data> nodes_;
  std::vector<rg_node> flat_;
  rg_graph graph_{};
  std::string unit_ = "samples";
  std::uint32_t random_layers_ = 0, tokens_input_ = 0;
};

inline const shape& value::dims() const {
  return net_->dims(*this);
}

namespace detail {

[[noreturn]] inline void bad_layer(const std::string& name, const std::string& why) {
  throw error(RG_E_CONFIG, "layer " + name + ": " + why);
}
inline void expect_rank(const value& x, std::size_t rank, const std::string& name) {
  if (x.dims().size() != rank)
    bad_layer(name, "takes " + std::to_string(rank) + " dimensions, got " + std::to_string(x.dims().size()));
}
// Returns the output's height or width for a convolution or pooling of an image of this height or width. Throws, naming
// the layer `name`, if the window does not fit.
inline std::int64_t output_size(std::int64_t size, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                                const std::string& name) {
  if (kernel < 1 || stride < 1 || padding < 0 || padding >= kernel || size + 2 * padding < kernel)
    bad_layer(name, "a kernel of " + std::to_string(kernel) + ", stride " + std::to_string(stride) + " and padding " +
                        std::to_string(padding) + " do not fit a size of " + std::to_string(size));
  return (size + 2 * padding - kernel) / stride + 1;
}
// Weights whose standard deviation preserves the variance through a non-linearity with this gain (He et al. 2015).
inline weight_options he_normal(std::int64_t fan_in, double gain) {
  return {.init = RG_INIT_NORMAL, .b = gain / std::sqrt(static_cast<double>(fan_in))};
}
// Weights of one dimension (biases, scales), which are not compressed.
inline weight_options small_vector(double start, bool decays) {
  return {.a = start, .decay = decays ? 1.0F : 0.0F, .compressible = false};
}

} // namespace detail

inline constexpr double relu_gain = 1.4142135623730951;

struct conv2d_options {
  std::int64_t kernel = 3, stride = 1, padding = 0;
  bool bias = true;
  double gain = relu_gain; // standard deviation of the initial weights: gain / sqrt(fan in)
};

// The op conv2d: [C,H,W] -> [channels,H',W']. The bias begins with zeros, has weight decay, and is not compressed
// (weight_options.compressible).
inline value conv2d(value x, const std::string& name, std::int64_t channels, const conv2d_options& o = {}) {
  detail::expect_rank(x, 3, name);
  auto& net = x.net();
  const std::int64_t c = x.dims()[0];
  const std::int64_t h = detail::output_size(x.dims()[1], o.kernel, o.stride, o.padding, name);
  const std::int64_t w = detail::output_size(x.dims()[2], o.kernel, o.stride, o.padding, name);
  std::vector<std::uint32_t> weights = {net.weight(name + ".weight", {channels, c, o.kernel, o.kernel},
                                                   detail::he_normal(c * o.kernel * o.kernel, o.gain))};
  if (o.bias) weights.push_back(net.weight(name + ".bias", {channels}, detail::small_vector(0, true)));
  return net.node("conv2d", name, {x}, weights,
                  {{"kernel", static_cast<double>(o.kernel)},
                   {"stride", static_cast<double>(o.stride)},
                   {"padding", static_cast<double>(o.padding)}},
                  {channels, h, w});
}

struct dense_options {
  bool bias = true;
  double gain = relu_gain; // 1 if no ReLU follows
  double deviation = 0;    // standard deviation of the initial weights; 0: gain / sqrt(inputs)
  bool bias_decays = true; // the bias has weight decay
};

// Adds the weights of a dense layer from `inputs` to `outputs` features, NAME.weight and NAME.bias, for several layers
// that share them: pass the returned numbers to dense(). The bias begins with zeros and is not compressed.
inline std::vector<std::uint32_t> dense_weights(network& net, const std::string& name, std::int64_t inputs,
                                                std::int64_t outputs, const dense_options& o = {}) {
  weight_options start = detail::he_normal(inputs, o.gain);
  if (o.deviation > 0) start.b = o.deviation;
  std::vector<std::uint32_t> weights = {net.weight(name + ".weight", {outputs, inputs}, start)};
  if (o.bias) weights.push_back(net.weight(name + ".bias", {outputs}, detail::small_vector(0, o.bias_decays)));
  return weights;
}

// A dense layer, of a vector [I] or of each position of a sequence [T,I]: with weights from dense_weights(), or with
// weights of its own.
inline value dense(value x, const std::string& name, const std::vector<std::uint32_t>& weights) {
  if (x.dims().size() != 2) detail::expect_rank(x, 1, name);
  const shape matrix = x.net().weight_dims(weights.at(0));
  if (matrix.at(1) != x.dims().back())
    detail::bad_layer(name, "its weights take " + std::to_string(matrix[1]) + " elements, got " +
                                std::to_string(x.dims().back()));
  shape out = x.dims();
  out.back() = matrix[0];
  return x.net().node("dense", name, {x}, weights, {}, out);
}
inline value dense(value x, const std::string& name, std::int64_t outputs, const dense_options& o = {}) {
  if (x.dims().size() != 2) detail::expect_rank(x, 1, name);
  return dense(x, name, dense_weights(x.net(), name, x.dims().back(), outputs, o));
}

struct batch_norm_options {
  double epsilon = 1e-5;
  double momentum = 0.9; // factor on the running statistics in each update: 1 - momentum of PyTorch
  double scale = 1;      // initial value of the weight `scale`
  bool sync = false;     // the op sync_batch_norm: over the batches of all workers
};

// The op batch_norm or sync_batch_norm: normalises each channel, the first dimension of x. Scale and bias have no
// weight decay and are not compressed.
inline value batch_norm(value x, const std::string& name, const batch_norm_options& o = {}) {
  auto& net = x.net();
  if (x.dims().empty()) detail::bad_layer(name, "needs channels to normalise");
  const shape channels = {x.dims()[0]};
  weight_options state = detail::small_vector(0, false);
  state.kind = RG_TENSOR_STATE;
  weight_options variance = state;
  variance.a = 1;
  const std::vector<std::uint32_t> weights = {
      net.weight(name + ".scale", channels, detail::small_vector(o.scale, false)),
      net.weight(name + ".bias", channels, detail::small_vector(0, false)), net.weight(name + ".mean", channels, state),
      net.weight(name + ".variance", channels, variance)};
  return net.node(o.sync ? "sync_batch_norm" : "batch_norm", name, {x}, weights,
                  {{"epsilon", o.epsilon}, {"momentum", o.momentum}}, x.dims());
}

inline value relu(value x) {
  return x.net().node("relu", "", {x}, {}, {}, x.dims());
}

// p: the probability that an element is zeroed; 0 adds no node.
inline value dropout(value x, double p) {
  if (!(p >= 0 && p < 1)) detail::bad_layer("dropout", "p must be at least 0 and less than 1");
  if (p == 0) return x;
  auto& net = x.net();
  return net.node("dropout", "", {x}, {}, {{"p", p}, {"layer", static_cast<double>(net.next_random_layer())}},
                  x.dims());
}

// padding must be less than kernel, here and in conv2d_options.
struct pool_options {
  std::int64_t kernel = 2, stride = 2, padding = 0;
};

namespace detail {
inline value pool(const char* op, value x, const pool_options& o) {
  expect_rank(x, 3, op);
  return x.net().node(op, "", {x}, {},
                      {{"kernel", static_cast<double>(o.kernel)},
                       {"stride", static_cast<double>(o.stride)},
                       {"padding", static_cast<double>(o.padding)}},
                      {x.dims()[0], output_size(x.dims()[1], o.kernel, o.stride, o.padding, op),
                       output_size(x.dims()[2], o.kernel, o.stride, o.padding, op)});
}
} // namespace detail

inline value max_pool(value x, const pool_options& o = {}) {
  return detail::pool("max_pool", x, o);
}
inline value avg_pool(value x, const pool_options& o = {}) {
  return detail::pool("avg_pool", x, o);
}

// The mean of each channel: [C,H,W] -> [C].
inline value global_avg_pool(value x) {
  detail::expect_rank(x, 3, "global_avg_pool");
  return x.net().node("global_avg_pool", "", {x}, {}, {}, {x.dims()[0]});
}

inline value sigmoid(value x) {
  return x.net().node("sigmoid", "", {x}, {}, {}, x.dims());
}

// Multiplies each channel of x by its factor in s.
inline value scale_channels(value x, value s) {
  detail::expect_rank(x, 3, "scale_channels");
  if (s.dims() != shape{x.dims()[0]}) detail::bad_layer("scale_channels", "needs one factor per channel");
  return x.net().node("scale_channels", "", {x, s}, {}, {}, x.dims());
}

// a + b, elementwise.
inline value add(value a, value b) {
  if (a.dims() != b.dims()) detail::bad_layer("add", "its inputs must have the same shape");
  return a.net().node("add", "", {a, b}, {}, {}, a.dims());
}

// x as a vector: [C,H,W] -> [C * H * W].
inline value flatten(value x) {
  return x.net().node("flatten", "", {x}, {}, {}, {elements(x.dims())});
}

// The loss of logits [K] and a label from index(name, K). A loss must be the network's last node, except inside
// sum_of_losses().
inline value softmax_cross_entropy(value logits, value label) {
  detail::expect_rank(logits, 1, "loss");
  detail::expect_rank(label, 0, "loss");
  return logits.net().node("softmax_cross_entropy", "loss", {logits, label}, {}, {}, {});
}

// The sum of several losses; must be the network's last node. Each loss is a mean over its own count: samples, tokens.
inline value sum_of_losses(const std::vector<value>& losses) {
  if (losses.empty()) throw error(RG_E_CONFIG, "sum_of_losses: there is nothing to add");
  return losses[0].net().node("sum_of_losses", "", losses, {}, {}, {});
}

} // namespace rg

#include <regatta/ext/graph.h>
#include <regatta/layers_sequence.hpp>

// SPDX-License-Identifier: Apache-2.0
#include "compile.hpp"

#include "activation.hpp"
#include "convolution.hpp"
#include "layers.hpp"
#include "squeeze.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

namespace onednn {
namespace {

// A node of the graph, checked as far as one can without knowing its op.
struct node {
  std::string_view op;
  std::string name;
  std::vector<std::uint32_t> inputs, weights;
  std::vector<rg_attr> attrs;
  std::vector<std::size_t> shape;
  std::vector<std::size_t> consumers; // nodes
  bool done = false;                  // part of an op already

  [[noreturn]] void fail(const std::string& why) const {
    throw rg::error(RG_E_CONFIG, "layer " + name + " (" + std::string(op) + "): " + why);
  }
  void expect(bool holds, const char* what) const {
    if (!holds) fail(what);
  }
  double attr(const char* key) const {
    for (const rg_attr& a : attrs)
      if (key == std::string_view(a.name)) return a.number;
    fail("attribute " + std::string(key) + " is missing");
  }
  std::size_t count(const char* key) const {
    const double d = attr(key);
    expect(d >= 0 && d <= 1e9 && d == std::floor(d), "an attribute is no whole number");
    return static_cast<std::size_t>(d);
  }
  std::size_t elements() const {
    std::size_t n = 1;
    for (std::size_t d : shape) n *= d;
    return n;
  }
};

std::vector<node> read_nodes(const rg_graph& g) {
  std::vector<node> nodes(g.node_count);
  for (std::uint32_t k = 0; k < g.node_count; ++k) {
    const auto raw = rg::copy_versioned(rg::at_stride(g.nodes, k));
    node& n = nodes[k];
    n.op = raw.op ? raw.op : "";
    n.name = raw.name ? raw.name : "";
    n.inputs.assign(raw.inputs, raw.inputs + raw.input_count);
    n.weights.assign(raw.weights, raw.weights + raw.weight_count);
    n.attrs.assign(raw.attrs, raw.attrs + raw.attr_count);
    n.expect(raw.ndim <= RG_MAX_DIMS, "has too many dimensions");
    for (std::uint32_t d = 0; d < raw.ndim; ++d) {
      n.expect(raw.shape[d] > 0 && raw.shape[d] <= 1'000'000'000, "has a dimension that is not positive");
      n.shape.push_back(static_cast<std::size_t>(raw.shape[d]));
    }
    for (std::uint32_t i : n.inputs) {
      n.expect(i < k, "reads a node that does not come before it");
      nodes[i].consumers.push_back(k);
    }
    for (std::uint32_t w : n.weights) n.expect(w < g.tensor_count, "has a weight that does not exist");
    n.expect((n.op == "input") == (k < g.input_count), "inputs come first, and only they");
  }
  return nodes;
}

class compiler {
public:
  compiler(const rg_graph& g, program& p)
      : graph_(g), program_(p), lanes_(p.dev.kernels->lanes), nodes_(read_nodes(g)), values_(g.node_count) {}

  void run() {
    if (nodes_.empty() || nodes_.back().op != "softmax_cross_entropy")
      throw rg::error(RG_E_UNSUPPORTED, "the network must end in softmax_cross_entropy");
    read_tensors();
    for (std::size_t k = 0; k < nodes_.size(); ++k)
      if (!nodes_[k].done) add(k);
    finish();
  }

private:
  void read_tensors() {
    uses_.resize(graph_.tensor_count);
    for (const node& n : nodes_)
      for (std::uint32_t w : n.weights) ++uses_[w];
    for (std::uint32_t t = 0; t < graph_.tensor_count; ++t) {
      auto w = std::make_unique<weight>();
      w->info = rg::copy_versioned(rg::at_stride(graph_.tensors, t));
      w->name = w->info.name ? w->info.name : "";
      w->graph_index = t;
      auto wrong = [&](const char* why) { throw rg::error(RG_E_CONFIG, "tensor " + w->name + ": " + why); };
      if (w->info.kind != RG_TENSOR_DENSE && w->info.kind != RG_TENSOR_STATE) wrong("sparse tables have no op here");
      if (w->info.ndim < 1 || w->info.ndim > RG_MAX_DIMS) wrong("needs 1 to 6 dimensions");
      if (uses_[t] == 0) wrong("no layer uses it");
      dnnl::memory::dims dims(w->info.shape, w->info.shape + w->info.ndim), strides(dims.size());
      dnnl_dim_t stride = 1;
      for (std::size_t d = dims.size(); d-- > 0; stride *= dims[d]) {
        if (dims[d] < 1) wrong("has a dimension that is not positive");
        strides[d] = stride;
      }
      w->canonical = desc(dims, dnnl::memory::data_type::f32, strides);
      w->layout = w->canonical;
      tensors_.push_back(std::move(w));
    }
  }

  weight* tensor(const node& n, std::size_t i, std::vector<std::size_t> shape, std::uint32_t kind = RG_TENSOR_DENSE) {
    n.expect(i < n.weights.size(), "has too few weights");
    weight* w = tensors_[n.weights[i]].get();
    n.expect(w->info.kind == kind && w->info.ndim == shape.size() &&
                 std::equal(shape.begin(), shape.end(), w->info.shape,
                            [](std::size_t a, std::int64_t b) { return static_cast<std::int64_t>(a) == b; }),
             "has a weight of the wrong kind or shape");
    return w;
  }

  value* make_value(const std::string& name, const std::vector<std::size_t>& shape, bool plain = false) {
    auto v = std::make_unique<value>();
    v->name = name;
    v->channels = shape.empty() ? 1 : shape[0];
    v->height = shape.size() > 1 ? shape[1] : 1;
    for (std::size_t d = 2; d < shape.size(); ++d) v->width *= shape[d];
    v->plain = plain;
    v->stride = plain ? v->elements() : round_up(v->channels) * v->spatial();
    program_.values.push_back(std::move(v));
    return program_.values.back().get();
  }
  std::size_t round_up(std::size_t channels) const { return (channels + lanes_ - 1) / lanes_ * lanes_; }

  template <class Op, class... A> Op* emit(A&&... a) {
    auto o = std::make_unique<Op>(std::forward<A>(a)...);
    Op* raw = o.get();
    bool gradient = false;
    for (edge& e : o->inputs()) {
      ++e.from->consumers;
      gradient = gradient || e.from->needs_gradient;
    }
    for (const weight* w : o->weights()) gradient = gradient || w->info.kind == RG_TENSOR_DENSE;
    o->output().needs_gradient = gradient;
    program_.ops.push_back(std::move(o));
    return raw;
  }

  // The input as it is: blocked, or row-major if the batch brings it so.
  value* input(const node& n, std::size_t i) const {
    n.expect(i < n.inputs.size(), "has too few inputs");
    return values_[n.inputs[i]];
  }
  value* blocked(const node& n, std::size_t i) {
    value* v = input(n, i);
    if (!v->plain) return v;
    value*& copy = blocked_[v];
    if (!copy) {
      copy = make_value(v->name + " blocked", {v->channels, v->height, v->width});
      emit<relayout>(v->name + " to blocks", v, copy, true, program_.dev);
    }
    return copy;
  }

  void add(std::size_t k) {
    node& n = nodes_[k];
    n.done = true;
    if (n.op == "input") return add_input(k);
    if (n.op == "conv2d") return add_convolution(k);
    if (n.op == "dense") return add_dense(k);
    if (n.op == "flatten") return add_flatten(k);
    if (n.op == "avg_pool" || (n.op == "max_pool" && !fusible_pool(n))) return add_pooling(k);
    if (n.op == "batch_norm" || n.op == "relu" || n.op == "dropout" || n.op == "max_pool") return add_activation(k);
    if (n.op == "add") {
      value *a = blocked(n, 0), *b = blocked(n, 1);
      n.expect(same_shape(n, nodes_[n.inputs[0]]) && same_shape(n, nodes_[n.inputs[1]]), "adds different shapes");
      values_[k] = make_value(n.name, n.shape);
      emit<addition>(n.name, a, b, values_[k], program_.dev);
      return;
    }
    if (n.op == "global_avg_pool" || n.op == "sigmoid" || n.op == "scale_channels") return add_squeeze(k);
    if (n.op == "softmax_cross_entropy") {
      n.expect(k + 1 == nodes_.size(), "the loss is the last node");
      value *logits = input(n, 0), *label = input(n, 1);
      n.expect(nodes_[n.inputs[0]].shape.size() == 1, "logits have one dimension");
      n.expect(label->input >= 0 && program_.inputs[static_cast<std::size_t>(label->input)].type == RG_I32 &&
                   label->elements() == 1,
               "the label is an input, one RG_I32 a sample");
      values_[k] = make_value(n.name, {1});
      emit<cross_entropy>(n.name, logits, label, values_[k], program_.dev);
      return;
    }
    throw rg::error(RG_E_UNSUPPORTED, "layer " + n.name + ": the oneDNN executor has no op " + std::string(n.op));
  }

  static bool same_shape(const node& a, const node& b) { return a.shape == b.shape; }

  void add_input(std::size_t k) {
    auto in = rg::copy_versioned(rg::at_stride(graph_.inputs, static_cast<std::size_t>(k)));
    program_.input_names.push_back(in.name ? in.name : "");
    program_.inputs.push_back(in);
    value* v = make_value(nodes_[k].name, nodes_[k].shape, true);
    v->input = static_cast<int>(k);
    nodes_[k].expect(in.kind == RG_INPUT_INDEX || in.type == RG_F32, "numbers come as RG_F32");
    values_[k] = v;
  }

  // The only consumer of node k, or null.
  node* follower(std::size_t k) { return nodes_[k].consumers.size() == 1 ? &nodes_[nodes_[k].consumers[0]] : nullptr; }

  // The bias of node k, null where it has none; left to a batch norm that is all that follows.
  weight* bias_of(std::size_t k, std::size_t outputs) {
    const node& n = nodes_[k];
    if (n.weights.size() < 2) return nullptr;
    weight* bias = tensor(n, 1, {outputs});
    const node* next = follower(k);
    if (!next || next->op != "batch_norm" || uses_[n.weights[1]] != 1) return bias;
    folded_[nodes_[k].consumers[0]] = bias;
    return nullptr;
  }

  void add_convolution(std::size_t k) {
    const node& n = nodes_[k];
    value* in = input(n, 0);
    n.expect(nodes_[n.inputs[0]].shape.size() == 3 && n.shape.size() == 3, "takes and makes 3 dimensions");
    // oneDNN reads a few row-major channels well, many not.
    if (in->plain && in->channels >= lanes_) in = blocked(n, 0);
    conv_shape s{.channels = in->channels,
                 .height = in->height,
                 .width = in->width,
                 .outputs = n.shape[0],
                 .out_height = n.shape[1],
                 .out_width = n.shape[2],
                 .kernel = n.count("kernel"),
                 .stride = n.count("stride"),
                 .padding = n.count("padding"),
                 .plain_input = in->plain};
    expect_window(n, s.kernel, s.stride, s.padding, *in);
    weight* w = tensor(n, 0, {s.outputs, s.channels, s.kernel, s.kernel});
    if (w->layout == w->canonical) w->layout = conv_weight_layout(program_.dev, s);
    weight* bias = bias_of(k, s.outputs);
    values_[k] = make_value(n.name, n.shape);
    emit<convolution>(n.name, in, values_[k], s, w, bias, program_.dev);
  }

  static void expect_window(const node& n, std::size_t kernel, std::size_t stride, std::size_t padding,
                            const value& in) {
    auto size = [&](std::size_t d) { return (d + 2 * padding - kernel) / stride + 1; };
    n.expect(kernel >= 1 && stride >= 1 && padding < kernel && in.height + 2 * padding >= kernel &&
                 in.width + 2 * padding >= kernel && n.shape[1] == size(in.height) && n.shape[2] == size(in.width),
             "its output has not the size that kernel, stride and padding give");
  }

  void add_dense(std::size_t k) {
    const node& n = nodes_[k];
    value* in = input(n, 0);
    n.expect(nodes_[n.inputs[0]].shape.size() == 1 && n.shape.size() == 1, "takes and makes one dimension");
    weight* w = tensor(n, 0, {n.shape[0], in->elements()});
    weight* bias = bias_of(k, n.shape[0]);
    values_[k] = make_value(n.name, n.shape);
    emit<dense>(n.name, in, values_[k], w, bias, program_.dev);
  }

  void add_flatten(std::size_t k) {
    const node& n = nodes_[k];
    value* in = input(n, 0);
    n.expect(n.shape.size() == 1 && n.shape[0] == in->elements(), "must make one dimension of all");
    if (!in->plain && in->spatial() == 1) {
      values_[k] = in; // rows of channels already
    } else if (in->plain && in->elements() % lanes_ == 0) {
      values_[k] = make_value(n.name, n.shape); // the batch's own rows
      values_[k]->input = in->input;
    } else {
      values_[k] = make_value(n.name, n.shape);
      emit<relayout>(n.name, in, values_[k], in->plain, program_.dev);
    }
  }

  bool fusible_pool(const node& n) const {
    const node& in = nodes_[n.inputs.at(0)];
    return in.shape.size() == 3 && n.count("kernel") == 2 && n.count("stride") == 2 && n.count("padding") == 0 &&
           in.shape[1] % 2 == 0 && in.shape[2] % 2 == 0;
  }

  void add_pooling(std::size_t k) {
    const node& n = nodes_[k];
    value* in = blocked(n, 0);
    n.expect(nodes_[n.inputs[0]].shape.size() == 3 && n.shape.size() == 3, "takes and makes 3 dimensions");
    const pool_shape s{n.count("kernel"), n.count("stride"), n.count("padding"), n.op == "avg_pool"};
    expect_window(n, s.kernel, s.stride, s.padding, *in);
    values_[k] = make_value(n.name, n.shape);
    emit<pooling>(n.name, in, values_[k], s, program_.dev);
  }

  void add_squeeze(std::size_t k) {
    const node &n = nodes_[k], &first = nodes_[n.inputs.at(0)];
    value* in = blocked(n, 0);
    values_[k] = make_value(n.name, n.shape);
    if (n.op == "global_avg_pool") {
      n.expect(first.shape.size() == 3 && n.shape == std::vector<std::size_t>{first.shape[0]}, "averages channels");
      emit<global_average>(n.name, in, values_[k], program_.dev);
    } else if (n.op == "sigmoid") {
      n.expect(same_shape(n, first), "its output has not the shape of its input");
      emit<sigmoid>(n.name, in, values_[k]);
    } else {
      value* factors = blocked(n, 1);
      n.expect(same_shape(n, first) && n.shape.size() == 3 &&
                   nodes_[n.inputs[1]].shape == std::vector<std::size_t>{n.shape[0]},
               "takes a map and one factor a channel");
      emit<channel_scale>(n.name, in, factors, values_[k], program_.dev);
    }
  }

  // Starts at node k and takes in what follows it, as long as it is of a later stage and nobody else needs what lies
  // between.
  void add_activation(std::size_t k) {
    const node first = nodes_[k];
    value* in = blocked(first, 0);
    stages s;
    auto rank = [&](const node& n) {
      if (n.op == "batch_norm") return 1;
      if (n.op == "relu") return 2;
      return n.op == "dropout" || (n.op == "max_pool" && fusible_pool(n)) ? 3 : 0;
    };
    std::size_t last = k;
    take(nodes_[k], k, s);
    while (rank(nodes_[last]) < 3) {
      node* next = follower(last);
      if (!next || next->done || rank(*next) <= rank(nodes_[last])) break;
      last = nodes_[last].consumers[0];
      take(*next, last, s);
    }
    values_[last] = make_value(first.name, nodes_[last].shape);
    emit<activation>(first.name, in, values_[last], s, program_.dev);
  }

  void take(node& n, std::size_t k, stages& s) {
    n.done = true;
    const node& in = nodes_[n.inputs.at(0)];
    if (n.op == "max_pool") {
      s.pool = true;
      n.expect(n.shape == std::vector<std::size_t>{in.shape[0], in.shape[1] / 2, in.shape[2] / 2},
               "its output has not half the size of its input");
      return;
    }
    n.expect(same_shape(n, in), "its output has not the shape of its input");
    if (n.op == "relu") {
      s.relu = true;
    } else if (n.op == "dropout") {
      s.dropout = n.attr("p");
      s.layer = static_cast<std::uint32_t>(n.count("layer"));
      n.expect(s.dropout >= 0 && s.dropout < 1, "p must be at least 0 and less than 1");
    } else {
      n.expect(!n.shape.empty(), "needs channels");
      s.norm = true;
      s.epsilon = n.attr("epsilon");
      s.momentum = n.attr("momentum");
      const std::vector<std::size_t> channels = {n.shape[0]};
      s.scale = tensor(n, 0, channels);
      s.bias = tensor(n, 1, channels);
      s.mean = tensor(n, 2, channels, RG_TENSOR_STATE);
      s.variance = tensor(n, 3, channels, RG_TENSOR_STATE);
      if (const auto folded = folded_.find(k); folded != folded_.end()) s.folded = folded->second;
    }
  }

  // Puts the weights in the order in which their gradients become ready: that of the first op that uses them, from the
  // last to the first; states follow.
  void finish() {
    std::map<const weight*, std::size_t> first_use;
    for (std::size_t k = program_.ops.size(); k-- > 0;)
      for (weight* w : program_.ops[k]->weights()) {
        if (!w->first_writer) w->first_writer = program_.ops[k].get();
        first_use[w] = k;
      }
    std::stable_sort(tensors_.begin(), tensors_.end(), [&](const auto& a, const auto& b) {
      if (a->info.kind != b->info.kind) return a->info.kind == RG_TENSOR_DENSE;
      return first_use.at(a.get()) > first_use.at(b.get());
    });
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      weight& w = *tensors_[i];
      w.index = static_cast<std::uint32_t>(i);
      w.info.name = w.name.c_str();
      w.info.storage =
          w.info.ndim == 1 ? round_up(static_cast<std::size_t>(w.info.shape[0])) : w.layout.get_size() / sizeof(float);
    }
    program_.weights = std::move(tensors_);
    program_.unit = graph_.unit ? graph_.unit : "samples";
    for (std::size_t i = 0; i < program_.inputs.size(); ++i) program_.inputs[i].name = program_.input_names[i].c_str();
  }

  const rg_graph& graph_;
  program& program_;
  std::size_t lanes_;
  std::vector<node> nodes_;
  std::vector<value*> values_;            // by node
  std::map<value*, value*> blocked_;      // row-major inputs and their blocked copies
  std::map<std::size_t, weight*> folded_; // by batch norm
  std::vector<int> uses_;                 // of tensors
  std::vector<std::unique_ptr<weight>> tensors_;
};

} // namespace

void compile(const rg_graph& graph, program& p) {
  compiler(graph, p).run();
}

} // namespace onednn

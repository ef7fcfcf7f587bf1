// SPDX-License-Identifier: Apache-2.0
//
// From a graph to a program: checks what the graph says, and makes an op of every node.
#include "ops.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

namespace cudnn {
namespace {

struct node {
  std::string_view op;
  std::string name;
  std::vector<std::uint32_t> inputs, weights;
  std::vector<rg_attr> attrs;
  std::vector<std::size_t> shape;

  void expect(bool holds, const char* what) const {
    if (!holds) throw rg::error(RG_E_CONFIG, "layer " + name + " (" + std::string(op) + "): " + what);
  }
  double attr(std::string_view key) const {
    for (const rg_attr& a : attrs)
      if (key == a.name) return a.number;
    throw rg::error(RG_E_CONFIG, "layer " + name + ": attribute " + std::string(key) + " is missing");
  }
  std::size_t count(std::string_view key) const {
    const double d = attr(key);
    expect(d >= 0 && d <= 1e9 && d == std::floor(d), "an attribute is no whole number");
    return static_cast<std::size_t>(d);
  }
};

class compiler {
public:
  compiler(const rg_graph& g, program& p) : graph_(g), program_(p), outputs_(g.node_count) {}

  void run() {
    for (std::uint32_t t = 0; t < graph_.tensor_count; ++t) add_tensor(t);
    for (std::uint32_t k = 0; k < graph_.node_count; ++k) {
      nodes_.push_back(read(k));
      k < graph_.input_count ? add_input(k) : add_op(k);
    }
    if (!program_.loss || program_.ops.back().get() != program_.loss)
      throw rg::error(RG_E_UNSUPPORTED, "the cudnn executor takes networks that end in softmax_cross_entropy");
    finish();
  }

private:
  node read(std::uint32_t k) const {
    const auto raw = rg::copy_versioned(rg::at_stride(graph_.nodes, k));
    node n;
    n.op = raw.op ? raw.op : "";
    n.name = raw.name ? raw.name : "";
    n.inputs.assign(raw.inputs, raw.inputs + raw.input_count);
    n.weights.assign(raw.weights, raw.weights + raw.weight_count);
    n.attrs.assign(raw.attrs, raw.attrs + raw.attr_count);
    n.expect(raw.ndim <= 3, "has more than three dimensions");
    for (std::uint32_t d = 0; d < raw.ndim; ++d) {
      n.expect(raw.shape[d] > 0 && raw.shape[d] <= 1'000'000'000, "has a dimension that is not positive");
      n.shape.push_back(static_cast<std::size_t>(raw.shape[d]));
    }
    for (const std::uint32_t i : n.inputs) n.expect(i < k, "reads a node that does not come before it");
    for (const std::uint32_t w : n.weights) n.expect(w < graph_.tensor_count, "has a weight that does not exist");
    n.expect((n.op == "input") == (k < graph_.input_count), "inputs come first, and only they");
    return n;
  }

  void add_tensor(std::uint32_t t) {
    auto w = std::make_unique<weight>();
    w->info = rg::copy_versioned(rg::at_stride(graph_.tensors, t));
    w->name = w->info.name ? w->info.name : "";
    w->graph_index = t;
    if (w->info.kind == RG_TENSOR_ROWS)
      throw rg::error(RG_E_UNSUPPORTED, "tensor " + w->name + ": the cudnn executor has no sparse tables");
    for (std::uint32_t d = 0; d < w->info.ndim && d < RG_MAX_DIMS; ++d)
      w->elements *= static_cast<std::size_t>(w->info.shape[d]);
    w->info.storage = w->elements;
    tensors_.push_back(std::move(w));
  }

  weight* tensor(const node& n, std::size_t i, const std::vector<std::size_t>& shape,
                 std::uint32_t kind = RG_TENSOR_DENSE) {
    n.expect(i < n.weights.size(), "has too few weights");
    weight* w = tensors_[n.weights[i]].get();
    n.expect(w->info.kind == kind && w->info.ndim == shape.size() &&
                 std::equal(shape.begin(), shape.end(), w->info.shape,
                            [](std::size_t a, std::int64_t b) { return static_cast<std::int64_t>(a) == b; }),
             "has a weight of the wrong kind or shape");
    return w;
  }

  value* make_value(const node& n) {
    auto v = std::make_unique<value>();
    if (!n.shape.empty()) v->channels = n.shape[0];
    if (n.shape.size() > 1) v->height = n.shape[1];
    if (n.shape.size() > 2) v->width = n.shape[2];
    program_.values.push_back(std::move(v));
    return program_.values.back().get();
  }

  void add_input(std::uint32_t k) {
    auto in = rg::copy_versioned(rg::at_stride(graph_.inputs, k));
    nodes_[k].expect(in.type == RG_F32 || in.type == RG_I32, "comes as RG_F32 or RG_I32");
    program_.input_names.push_back(in.name ? in.name : "");
    program_.inputs.push_back(in);
    outputs_[k] = make_value(nodes_[k]);
    outputs_[k]->input = static_cast<int>(k);
  }

  const node& source(const node& n, std::size_t i) const {
    n.expect(i < n.inputs.size(), "has too few inputs");
    return nodes_[n.inputs[i]];
  }
  // Input i, numbers.
  value* input(const node& n, std::size_t i) const {
    n.expect(i < n.inputs.size(), "has too few inputs");
    value* v = outputs_[n.inputs[i]];
    n.expect(v->input < 0 || program_.inputs[static_cast<std::size_t>(v->input)].type == RG_F32, "takes numbers there");
    return v;
  }

  template <class Op, class... A> Op* emit(A&&... a) {
    auto o = std::make_unique<Op>(std::forward<A>(a)...);
    Op* raw = o.get();
    for (const edge& e : raw->inputs()) raw->output().needs_gradient |= e.from->needs_gradient;
    for (const weight* w : raw->weights()) raw->output().needs_gradient |= w->info.kind == RG_TENSOR_DENSE;
    program_.ops.push_back(std::move(o));
    return raw;
  }

  window window_of(const node& n, const value& in, const value& out) const {
    const bool whole = n.op == "global_avg_pool";
    window w;
    w.height = static_cast<int>(in.height);
    w.width = static_cast<int>(in.width);
    w.out_height = static_cast<int>(out.height);
    w.out_width = static_cast<int>(out.width);
    w.kernel_height = whole ? w.height : static_cast<int>(n.count("kernel"));
    w.kernel_width = whole ? w.width : w.kernel_height;
    w.stride = whole ? 1 : static_cast<int>(n.count("stride"));
    w.padding = whole ? 0 : static_cast<int>(n.count("padding"));
    const auto fits = [&](int size, int kernel, int made) {
      return kernel >= 1 && w.stride >= 1 && w.padding < kernel && size + 2 * w.padding >= kernel &&
             made == (size + 2 * w.padding - kernel) / w.stride + 1;
    };
    n.expect(in.channels == out.channels && fits(w.height, w.kernel_height, w.out_height) &&
                 fits(w.width, w.kernel_width, w.out_width),
             "its output has not the size that kernel, stride and padding give");
    return w;
  }

  void add_op(std::uint32_t k) {
    const node& n = nodes_[k];
    value* in = input(n, 0);
    const std::vector<std::size_t>& from = source(n, 0).shape;
    if (n.op == "flatten") {
      n.expect(n.shape == std::vector{in->elements()}, "must make one dimension of all");
      value* flat = make_value(n); // the same memory, as a vector
      flat->needs_gradient = in->needs_gradient;
      flat->input = in->input;
      aliases_.emplace_back(flat, in);
      outputs_[k] = flat;
      return;
    }
    value* out = outputs_[k] = make_value(n);
    if (n.op == "conv2d") {
      n.expect(from.size() == 3 && n.shape.size() == 3, "takes and makes 3 dimensions");
      const convolution::shape s{n.count("kernel"), n.count("stride"), n.count("padding")};
      const auto size = [&](std::size_t d) { return (d + 2 * s.padding - s.kernel) / s.stride + 1; };
      n.expect(s.kernel >= 1 && s.stride >= 1 && s.padding < s.kernel && in->height + 2 * s.padding >= s.kernel &&
                   in->width + 2 * s.padding >= s.kernel && out->height == size(in->height) &&
                   out->width == size(in->width),
               "its output has not the size that kernel, stride and padding give");
      weight* w = tensor(n, 0, {out->channels, in->channels, s.kernel, s.kernel});
      emit<convolution>(n.name, in, out, s, w, n.weights.size() > 1 ? tensor(n, 1, {out->channels}) : nullptr);
    } else if (n.op == "dense") {
      n.expect(!from.empty() && from.size() <= 2 && n.shape.size() == from.size(), "takes and makes 1 or 2 dimensions");
      const std::size_t ins = from.back(), outs = n.shape.back();
      n.expect(from.size() == 1 || from[0] == n.shape[0], "keeps the places of a sequence");
      emit<dense>(n.name, in, out, tensor(n, 0, {outs, ins}), n.weights.size() > 1 ? tensor(n, 1, {outs}) : nullptr,
                  ins, outs);
    } else if (n.op == "batch_norm") {
      n.expect(n.shape == from && !from.empty(), "its output has not the shape of its input");
      n.expect(in->needs_gradient, "normalises the batch itself, which the cudnn executor does not");
      const std::vector channels = {from[0]};
      const batch_norm::tensors t{tensor(n, 0, channels), tensor(n, 1, channels),
                                  tensor(n, 2, channels, RG_TENSOR_STATE), tensor(n, 3, channels, RG_TENSOR_STATE)};
      emit<batch_norm>(n.name, in, out, t, n.attr("epsilon"), n.attr("momentum"));
    } else if (n.op == "relu" || n.op == "dropout") {
      n.expect(n.shape == from, "its output has not the shape of its input");
      if (n.op == "relu") {
        emit<relu>(n.name, std::vector{in}, out);
      } else {
        n.expect(n.attr("p") >= 0 && n.attr("p") < 1, "p must be at least 0 and less than 1");
        emit<dropout>(n.name, in, out, n.attr("p"), static_cast<std::uint32_t>(n.count("layer")));
      }
    } else if (n.op == "max_pool" || n.op == "avg_pool" || n.op == "global_avg_pool") {
      n.expect(from.size() == 3, "takes 3 dimensions");
      emit<pooling>(n.name, in, out, window_of(n, *in, *out), n.op != "max_pool");
    } else if (n.op == "add") {
      n.expect(n.shape == from && n.shape == source(n, 1).shape, "adds different shapes");
      emit<addition>(n.name, std::vector{in, input(n, 1)}, out);
    } else if (n.op == "softmax_cross_entropy") {
      n.expect(from.size() == 1 && n.inputs.size() == 2, "takes one dimension of logits, and labels");
      value* label = outputs_[n.inputs[1]];
      n.expect(label->input >= 0 && program_.inputs[static_cast<std::size_t>(label->input)].type == RG_I32 &&
                   label->elements() == 1,
               "takes an input of the network's there: one whole number a sample");
      n.expect(!program_.loss, "is a second loss, and the cudnn executor takes one");
      program_.loss = emit<cross_entropy>(n.name, std::vector{in, label}, out);
    } else {
      throw rg::error(RG_E_UNSUPPORTED, "layer " + n.name + ": the cudnn executor has no op " + std::string(n.op) +
                                            " yet; train.device = \"cpu\" has");
    }
  }

  // Weights in the order in which their gradients become ready: that of the first op that uses them, from the last to
  // the first; states follow. The first op of a backward pass that writes a gradient overwrites it, others add.
  void finish() {
    std::map<const weight*, std::size_t> first_use;
    std::map<const value*, bool> written;
    const auto memory_of = [&](const value* v) {
      for (std::size_t i = aliases_.size(); i-- > 0;)
        if (aliases_[i].first == v) v = aliases_[i].second;
      return v;
    };
    for (std::size_t k = program_.ops.size(); k-- > 0;) {
      op& o = *program_.ops[k];
      for (weight* w : o.weights()) {
        if (!w->first_writer) w->first_writer = &o;
        first_use[w] = k;
      }
      for (edge& e : o.inputs()) e.add = std::exchange(written[memory_of(e.from)], true);
    }
    for (const auto& w : tensors_)
      if (!first_use.contains(w.get())) throw rg::error(RG_E_CONFIG, "tensor " + w->name + ": no layer uses it");
    std::stable_sort(tensors_.begin(), tensors_.end(), [&](const auto& a, const auto& b) {
      if (a->info.kind != b->info.kind) return a->info.kind < b->info.kind; // as abi.h numbers them
      return first_use.at(a.get()) > first_use.at(b.get());
    });
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      tensors_[i]->index = static_cast<std::uint32_t>(i);
      tensors_[i]->info.name = tensors_[i]->name.c_str();
    }
    program_.weights = std::move(tensors_);
    program_.aliases = std::move(aliases_);
    program_.unit = graph_.unit ? graph_.unit : "samples";
    for (std::size_t i = 0; i < program_.inputs.size(); ++i) program_.inputs[i].name = program_.input_names[i].c_str();
  }

  const rg_graph& graph_;
  program& program_;
  std::vector<node> nodes_;
  std::vector<value*> outputs_; // by node
  std::vector<std::unique_ptr<weight>> tensors_;
  std::vector<std::pair<value*, value*>> aliases_;
};

} // namespace

void compile(const rg_graph& graph, program& p) {
  compiler(graph, p).run();
}

} // namespace cudnn

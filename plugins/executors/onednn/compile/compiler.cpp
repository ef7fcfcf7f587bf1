// SPDX-License-Identifier: Apache-2.0
#include "compile/compiler.hpp"

#include "ops/elementwise.hpp"

#include <algorithm>

#include <regatta/ext/graph.h>

namespace onednn {
namespace {

using compile_function = void (*)(compiler& c, std::size_t k);

// An op of the graph, and the functions that compile it: `of_sequence` where its first input is a sequence and
// `compile` elsewhere. Ops with one function have it in `compile`.
struct rule {
  std::string_view op; // node::op
  compile_function compile, of_sequence = nullptr;
};

constexpr rule rules[] = {
    {"add", compile_add, compile_layer_norm},
    {"attention", compile_attention},
    {"avg_pool", compile_pooling},
    {"batch_norm", compile_batch_norm},
    {"concat", compile_concat},
    {"conv2d", compile_convolution},
    {"cosine", compile_cosine},
    {"dense", compile_dense},
    {"dropout", compile_batch_norm, compile_layer_norm},
    {"embedding", compile_embedding},
    {"embedding_bag", compile_lookup},
    {"first_position", compile_select_positions},
    {"flatten", compile_flatten},
    {"gelu", compile_elementwise},
    {"global_avg_pool", compile_global_average},
    {"layer_norm", compile_layer_norm},
    {"max_pool", compile_max_pool},
    {"pairwise_hinge", compile_hinge},
    {"relu", compile_batch_norm, compile_elementwise},
    {"scale_channels", compile_channel_scale},
    {"sigmoid", compile_sigmoid},
    {"softmax_cross_entropy", compile_cross_entropy},
    {"softmax_cross_entropy_auc", compile_auc},
    {"softsign", compile_softsign},
    {"sparse_embedding", compile_lookup},
    {"select_positions", compile_select_positions},
    {"sync_batch_norm", compile_batch_norm},
    {"tanh", compile_elementwise},
    {"token_cross_entropy", compile_token_loss},
};

compile_function function_for(const node& n, bool of_sequence) {
  for (const rule& r : rules)
    if (r.op == n.op) return of_sequence && r.of_sequence ? r.of_sequence : r.compile;
  throw rg::error(RG_E_UNSUPPORTED, "layer " + n.name + ": the oneDNN executor has no op " + std::string(n.op));
}

} // namespace

compiler::compiler(const rg_graph& g, program& p) : graph_compiler(g, p), program_(p), values_(g.node_count) {
  for (std::uint32_t t = 0; t < g.tensor_count; ++t) {
    tensors_.push_back(std::make_unique<weight>(executors::read_tensor(g, t)));
    weight& w = *tensors_.back();
    const dnnl::memory::dims dims(w.info.shape, w.info.shape + w.info.ndim);
    dnnl::memory::dims strides(dims.size());
    dnnl_dim_t stride = 1;
    for (std::size_t d = dims.size(); d-- > 0; stride *= dims[d]) strides[d] = stride;
    w.canonical = desc(dims, dnnl::memory::data_type::f32, strides);
    w.layout = w.canonical;
  }
}

void compiler::run() {
  compile_nodes();
  for (auto& w : tensors_) {
    w->info.storage = w->info.ndim == 1 ? round_up(w->elements) : w->layout.get_size() / sizeof(float);
    w->info.reordered = w->layout != w->canonical;
  }
  order(tensors_);
  program_.weights = std::move(tensors_);
}

void compiler::compile_node(std::size_t k) {
  const node& n = nodes_[k];
  if (n.op == "input")
    add_input(k);
  else
    function_for(n, !n.inputs.empty() && nodes_[n.inputs[0]].shape.size() == 2)(*this, k);
}

weight* compiler::weight_of(const node& n, std::size_t i) const {
  n.expect(i < n.weights.size(), "has too few weights");
  return tensors_[n.weights[i]].get();
}

weight* compiler::tensor(const node& n, std::size_t i, const std::vector<std::size_t>& shape, std::uint32_t kind) {
  weight* w = weight_of(n, i);
  n.expect(w->is(kind, shape), "has a weight of the wrong kind or shape");
  return w;
}

weight* compiler::table(const node& n, std::size_t i) {
  weight* w = weight_of(n, i);
  n.expect(w->is_table(), "needs a table of rows");
  return w;
}

weight* compiler::matrix(const node& n, std::size_t i, std::size_t columns) {
  weight* w = weight_of(n, i);
  n.expect(w->is_matrix(columns), "has a weight of the wrong kind or shape");
  return w;
}

value* compiler::make_value(const std::string& name, const std::vector<std::size_t>& shape, bool plain) {
  auto v = std::make_unique<value>();
  v->name = name;
  for (std::size_t d = 0; d < shape.size(); ++d) v->dims[std::min<std::size_t>(d, 2)] *= shape[d];
  v->plain = plain;
  v->stride = plain ? v->elements() : round_up(v->channels()) * v->spatial();
  program_.values.push_back(std::move(v));
  return program_.values.back().get();
}

void compiler::add(std::unique_ptr<op> o) {
  bool gradient = false;
  for (edge& e : o->inputs()) {
    ++e.from->consumers;
    gradient = gradient || e.from->needs_gradient;
  }
  for (weight* w : o->weights()) {
    gradient = gradient || w->info.kind != RG_TENSOR_STATE;
    w->first_op = std::min(w->first_op, program_.ops.size());
    w->last_op = std::max(w->last_op, program_.ops.size());
    w->first_writer = o.get(); // the last op that uses it comes first in a backward pass
  }
  o->output().needs_gradient = gradient;
  program_.ops.push_back(std::move(o));
}

value* compiler::stored(const node& n, std::size_t i) {
  n.expect(i < n.inputs.size(), "has too few inputs");
  value* v = values_[n.inputs[i]];
  n.expect(v != nullptr, "reads the output of a layer that stores none");
  return v;
}

value* compiler::input(const node& n, std::size_t i) {
  return as_type(stored(n, i), false);
}

value* compiler::sequence(const node& n, std::size_t i, bool half) {
  n.expect(source(n, i).shape.size() == 2, "takes a sequence: positions and features");
  value* v = stored(n, i);
  n.expect(v->plain, "takes a row-major sequence");
  return as_type(v, half);
}

value* compiler::indices(const node& n, std::size_t i, std::size_t elements) {
  value* v = input(n, i);
  n.expect(v->input >= 0 && program_.inputs[static_cast<std::size_t>(v->input)].type == RG_I32 &&
               v->elements() == elements,
           "needs an input of the network there, of type RG_I32, with one index for each of its elements");
  return v;
}

value* compiler::blocked(const node& n, std::size_t i) {
  return as_type(either(n, i), false);
}

value* compiler::either(const node& n, std::size_t i) {
  value* v = stored(n, i);
  if (!v->plain) return v;
  value*& copy = blocked_[v];
  if (!copy) {
    copy = make_value(v->name + " blocked", {v->dims.begin(), v->dims.end()});
    emit<relayout>(v->name + " to blocks", v, copy, true, dev());
  }
  return copy;
}

value* compiler::as_type(value* v, bool half) {
  if (v->half == half) return v;
  value*& copy = converted_[v];
  if (!copy) {
    copy = make_value(v->name + (half ? " in bf16" : " in fp32"), {v->dims.begin(), v->dims.end()}, v->plain);
    copy->half = half;
    emit<conversion>(v->name + (half ? " to bf16" : " to fp32"), v, copy, dev());
  }
  return copy;
}

void compiler::add_input(std::size_t k) {
  const rg_input& in = program_.inputs[k];
  nodes_[k].expect(in.kind == RG_INPUT_INDEX || in.type == RG_F32, "values must be of type RG_F32");
  values_[k] = make_value(nodes_[k].name, nodes_[k].shape, true);
  values_[k]->input = static_cast<int>(k);
}

weight* compiler::bias_of(std::size_t k, std::size_t outputs) {
  const node& n = nodes_[k];
  if (n.weights.size() < 2) return nullptr;
  weight* bias = tensor(n, 1, {outputs});
  const node* next = follower(k);
  std::ptrdiff_t uses = 0;
  for (const node& any : nodes_) uses += std::count(any.weights.begin(), any.weights.end(), n.weights[1]);
  if (!next || !is_batch_norm(*next) || uses != 1) return bias;
  folded_[nodes_[k].consumers[0]] = bias;
  return nullptr;
}

weight* compiler::folded(std::size_t k) const {
  const auto found = folded_.find(k);
  return found == folded_.end() ? nullptr : found->second;
}

void compile(const rg_graph& graph, program& p) {
  compiler(graph, p).run();
}

} // namespace onednn

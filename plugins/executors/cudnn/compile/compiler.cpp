// SPDX-License-Identifier: Apache-2.0
//
// Compiles a graph to a program: checks the nodes and makes ops of them.
#include "compile/compiler.hpp"
#include "ops/elementwise.hpp"

#include <algorithm>
#include <string_view>

#include <regatta/ext/graph.h>

namespace cudnn {
namespace {

struct compile_rule {
  std::string_view op;
  compile_function compile;
};
constexpr compile_rule rules[] = {
    {"conv2d", compile_convolution},
    {"dense", compile_dense},
    {"batch_norm", compile_batch_norm},
    {"layer_norm", compile_layer_norm},
    {"relu", compile_map},
    {"gelu", compile_map},
    {"tanh", compile_map},
    {"sigmoid", compile_map},
    {"softsign", compile_map},
    {"add", compile_addition},
    {"flatten", compile_flatten},
    {"concat", compile_concatenation},
    {"dropout", compile_dropout},
    {"max_pool", compile_pooling},
    {"avg_pool", compile_pooling},
    {"global_avg_pool", compile_global_average},
    {"scale_channels", compile_channel_scale},
    {"cosine", compile_cosine},
    {"select_positions", compile_select_positions},
    {"first_position", compile_select_positions},
    {"embedding", compile_embedding},
    {"sparse_embedding", compile_lookup},
    {"embedding_bag", compile_lookup},
    {"attention", compile_attention},
    {"softmax_cross_entropy", compile_cross_entropy},
    {"token_cross_entropy", compile_token_loss},
    {"softmax_cross_entropy_auc", compile_auc},
    {"pairwise_hinge", compile_hinge},
};

compile_function rule_for(const node& n) {
  for (const compile_rule& r : rules)
    if (r.op == n.op) return r.compile;
  throw rg::error(RG_E_UNSUPPORTED, "layer " + n.name + ": the cuDNN executor has no op " + std::string(n.op));
}

const value* memory_of(const value* v) {
  while (v->alias) v = v->alias;
  return v;
}

} // namespace

compiler::compiler(const rg_graph& g, program& p) : graph_compiler(g, p), program_(p), values_(g.node_count) {
  for (std::uint32_t t = 0; t < g.tensor_count; ++t)
    tensors_.push_back(std::make_unique<weight>(executors::read_tensor(g, t)));
}

void compiler::run() {
  compile_nodes();
  order_gradients();
  order(tensors_);
  program_.weights = std::move(tensors_);
}

void compiler::compile_node(std::size_t k) {
  const node& n = nodes_[k];
  kind_ = n.op;
  if (n.op == "input")
    add_input(k);
  else
    rule_for(n)(*this, k);
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

weight* compiler::gemm_weight(const node& n, std::size_t i, const std::vector<std::size_t>& shape) {
  weight* w = tensor(n, i, shape);
  const precision& p = program_.computes;
  if (shape.size() == 4) {
    w->layout = {static_cast<std::uint32_t>(shape[1]), static_cast<std::uint32_t>(shape[2] * shape[3]), false};
    w->copy_layout = {w->layout.channels, w->layout.spatial, p.channels_last};
  }
  w->copied = p.type != dtype::f32 || w->copy_layout.channels_last;
  return w;
}

weight* compiler::matrix(const node& n, std::size_t i, std::size_t columns) {
  weight* w = weight_of(n, i);
  n.expect(w->is_matrix(columns), "has a weight of the wrong kind or shape");
  return w;
}

weight* compiler::table(const node& n, std::size_t i) {
  weight* w = weight_of(n, i);
  n.expect(w->is_table(), "needs a table of rows");
  return w;
}

value* compiler::make_value(const std::string& name, const std::vector<std::size_t>& shape) {
  auto v = std::make_unique<value>();
  v->name = name;
  v->shape = shape;
  v->type = program_.computes.type;
  v->layout.channels = shape.empty() ? 1 : static_cast<std::uint32_t>(shape[0]);
  for (std::size_t d = 1; d < shape.size(); ++d) v->layout.spatial *= static_cast<std::uint32_t>(shape[d]);
  v->layout.channels_last = program_.computes.channels_last && shape.size() == 3;
  program_.values.push_back(std::move(v));
  return program_.values.back().get();
}

value* compiler::make_output(std::size_t k) {
  values_[k] = make_value(nodes_[k].name, nodes_[k].shape);
  values_[k]->node = static_cast<int>(k);
  return values_[k];
}

void compiler::add_input(std::size_t k) {
  const rg_input& in = program_.inputs[k];
  nodes_[k].expect(in.type == RG_F32 || in.type == RG_I32, "must be of type RG_F32 or RG_I32");
  value* v = make_output(k);
  v->type = dtype::f32;
  v->layout.channels_last = false;
  v->input = static_cast<int>(k);
}

value* compiler::input(const node& n, std::size_t i) {
  n.expect(i < n.inputs.size(), "has too few inputs");
  value* v = values_[n.inputs[i]];
  n.expect(v != nullptr, "reads the output of a layer that stores none");
  if (v->input < 0) return v;
  n.expect(program_.inputs[static_cast<std::size_t>(v->input)].type == RG_F32, "needs an input of type RG_F32 there");
  const precision& p = program_.computes;
  if (p.type == dtype::f32 && !(p.channels_last && v->shape.size() == 3)) return v;
  value*& copy = converted_[v];
  if (!copy) {
    copy = make_value(v->name, v->shape);
    copy->node = v->node;
    emit<relayout>(v->name, std::vector{v}, copy)->kind = "input";
  }
  return copy;
}

value* compiler::indices(const node& n, std::size_t i, std::size_t elements) {
  n.expect(i < n.inputs.size(), "has too few inputs");
  value* v = values_[n.inputs[i]];
  n.expect(v && v->input >= 0 && program_.inputs[static_cast<std::size_t>(v->input)].type == RG_I32 &&
               v->elements() == elements,
           "needs an input of the network there, of type RG_I32, with one index for each of its elements");
  return v;
}

void compiler::add(std::unique_ptr<op> o) {
  o->batch = program_.batch;
  o->kind = kind_;
  for (const edge& e : o->inputs()) o->output().needs_gradient |= e.from->needs_gradient;
  for (weight* w : o->weights()) {
    o->output().needs_gradient |= w->info.kind != RG_TENSOR_STATE;
    w->first_op = std::min(w->first_op, program_.ops.size());
    w->first_writer = o.get(); // the last op that uses it runs first in a backward pass
  }
  program_.ops.push_back(std::move(o));
}

// In a backward pass, the first op that writes a gradient overwrites it; the others add.
void compiler::order_gradients() {
  std::map<const value*, bool> written;
  for (std::size_t k = program_.ops.size(); k-- > 0;)
    for (edge& e : program_.ops[k]->inputs()) e.add = std::exchange(written[memory_of(e.from)], true);
}

void compile(const rg_graph& graph, program& p) {
  compiler(graph, p).run();
}

} // namespace cudnn

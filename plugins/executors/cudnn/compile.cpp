// SPDX-License-Identifier: Apache-2.0
//
// From a graph to a program: checks what the graph says, and makes ops of its nodes.
#include "compiler.hpp"
#include "elementwise.hpp"

#include <algorithm>

namespace cudnn {
namespace {

compile_function rule_for(const node& n) {
  for (const auto& rules : {layer_rules(), sequence_rules(), loss_rules()})
    for (const compile_rule& r : rules)
      if (r.op == n.op) return r.compile;
  throw rg::error(RG_E_UNSUPPORTED, "layer " + n.name + ": the cuDNN executor has no op " + std::string(n.op));
}

const value* memory_of(const value* v) {
  while (v->alias) v = v->alias;
  return v;
}

} // namespace

void compiler::run() {
  values_.resize(nodes_.size());
  read_tensors();
  for (std::size_t k = 0; k < nodes_.size(); ++k) {
    node& n = nodes_[k];
    if (n.done) continue;
    n.done = true;
    if (n.op == "input")
      add_input(k);
    else
      rule_for(n)(*this, k);
  }
  check_end();
  order_gradients();
  finish();
}

void compiler::read_tensors() {
  for (std::uint32_t t = 0; t < graph_.tensor_count; ++t) {
    auto w = std::make_unique<weight>();
    w->info = rg::copy_versioned(rg::at_stride(graph_.tensors, t));
    w->name = w->info.name ? w->info.name : "";
    w->graph_index = t;
    const auto wrong = [&](const char* why) { throw rg::error(RG_E_CONFIG, "tensor " + w->name + ": " + why); };
    if (w->info.ndim < 1 || w->info.ndim > RG_MAX_DIMS) wrong("needs 1 to 6 dimensions");
    for (std::uint32_t d = 0; d < w->info.ndim; ++d) {
      if (w->info.shape[d] < 1) wrong("has a dimension that is not positive");
      w->elements *= static_cast<std::size_t>(w->info.shape[d]);
    }
    if (w->info.kind == RG_TENSOR_ROWS) {
      if (w->info.ndim != 2) wrong("a sparse table needs rows and columns");
      w->sparse = std::make_unique<executors::sparse_table>();
    } else if (w->info.kind != RG_TENSOR_DENSE && w->info.kind != RG_TENSOR_STATE) {
      wrong("is of an unknown kind");
    }
    tensors_.push_back(std::move(w));
  }
}

const node& compiler::source(const node& n, std::size_t i) const {
  n.expect(i < n.inputs.size(), "has too few inputs");
  return nodes_[n.inputs[i]];
}

node* compiler::follower(std::size_t k) {
  return nodes_[k].consumers.size() == 1 ? &nodes_[nodes_[k].consumers[0]] : nullptr;
}

weight* compiler::tensor(const node& n, std::size_t i, const std::vector<std::size_t>& shape, std::uint32_t kind) {
  n.expect(i < n.weights.size(), "has too few weights");
  weight* w = tensors_[n.weights[i]].get();
  n.expect(w->info.kind == kind && w->info.ndim == shape.size() &&
               std::equal(shape.begin(), shape.end(), w->info.shape,
                          [](std::size_t a, std::int64_t b) { return static_cast<std::int64_t>(a) == b; }),
           "has a weight of the wrong kind or shape");
  return w;
}

weight* compiler::multiplied(const node& n, std::size_t i, const std::vector<std::size_t>& shape) {
  weight* w = tensor(n, i, shape);
  const precision& p = program_.computes;
  if (shape.size() == 4) {
    w->lies = {static_cast<std::uint32_t>(shape[1]), static_cast<std::uint32_t>(shape[2] * shape[3]), false};
    w->copy_lies = {w->lies.channels, w->lies.spatial, p.channels_last};
  }
  w->copied = p.type != number::f32 || w->copy_lies.last;
  return w;
}

weight* compiler::table(const node& n, std::size_t i) {
  n.expect(i < n.weights.size(), "has too few weights");
  weight* w = tensors_[n.weights[i]].get();
  n.expect(w->info.kind != RG_TENSOR_STATE && w->info.ndim == 2, "needs a table of rows");
  return w;
}

value* compiler::make_value(const std::string& name, const std::vector<std::size_t>& shape) {
  auto v = std::make_unique<value>();
  v->name = name;
  v->shape = shape;
  v->type = program_.computes.type;
  v->lies.channels = shape.empty() ? 1 : static_cast<std::uint32_t>(shape[0]);
  for (std::size_t d = 1; d < shape.size(); ++d) v->lies.spatial *= static_cast<std::uint32_t>(shape[d]);
  v->lies.last = program_.computes.channels_last && shape.size() == 3;
  program_.values.push_back(std::move(v));
  return program_.values.back().get();
}

void compiler::add_input(std::size_t k) {
  const auto in = rg::copy_versioned(rg::at_stride(graph_.inputs, static_cast<std::uint32_t>(k)));
  nodes_[k].expect(in.type == RG_F32 || in.type == RG_I32, "comes as RG_F32 or RG_I32");
  program_.input_names.push_back(in.name ? in.name : "");
  program_.inputs.push_back(in);
  value* v = make_output(k);
  v->type = number::f32;
  v->lies.last = false;
  v->input = static_cast<int>(k);
}

value* compiler::input(const node& n, std::size_t i) {
  n.expect(i < n.inputs.size(), "has too few inputs");
  value* v = values_[n.inputs[i]];
  n.expect(v != nullptr, "takes a value that another layer keeps to itself");
  if (v->input < 0) return v;
  n.expect(program_.inputs[static_cast<std::size_t>(v->input)].type == RG_F32, "takes numbers there");
  const precision& p = program_.computes;
  if (p.type == number::f32 && !(p.channels_last && v->shape.size() == 3)) return v;
  value*& copy = converted_[v];
  if (!copy) {
    copy = make_value(v->name, v->shape);
    emit<relayout>(v->name, std::vector{v}, copy);
  }
  return copy;
}

value* compiler::indices(const node& n, std::size_t i, std::size_t elements) {
  n.expect(i < n.inputs.size(), "has too few inputs");
  value* v = values_[n.inputs[i]];
  n.expect(v && v->input >= 0 && program_.inputs[static_cast<std::size_t>(v->input)].type == RG_I32 &&
               v->elements() == elements,
           "takes an input of the network's there: RG_I32, one for each of its elements");
  return v;
}

bool compiler::is_loss(const value* v) const {
  return std::any_of(program_.losses.begin(), program_.losses.end(), [&](loss* l) { return &l->output() == v; });
}

void compiler::add(std::unique_ptr<op> o) {
  o->batch = program_.batch;
  for (const edge& e : o->inputs()) o->output().needs_gradient |= e.from->needs_gradient;
  for (const weight* w : o->weights()) o->output().needs_gradient |= w->info.kind != RG_TENSOR_STATE;
  o->output().maker = o.get();
  program_.ops.push_back(std::move(o));
}

// The last node is a loss or adds up some; every loss is that node or part of it.
void compiler::check_end() const {
  const std::size_t last = nodes_.size() - 1;
  if (nodes_.empty() || (nodes_[last].op != "sum_of_losses" && !is_loss(values_[last])))
    throw rg::error(RG_E_UNSUPPORTED, "the network must end in a loss, such as softmax_cross_entropy");
  for (std::size_t k = 0; k < last; ++k) {
    if (values_[k] && is_loss(values_[k]))
      nodes_[k].expect(nodes_[k].consumers == std::vector<std::size_t>{last},
                       "is a loss, but not added to the last one");
    else
      nodes_[k].expect(nodes_[k].op == "input" || !nodes_[k].consumers.empty(), "is read by nobody");
  }
}

// The first op of a backward pass that writes a gradient overwrites it, others add.
void compiler::order_gradients() {
  std::map<const value*, bool> written;
  for (std::size_t k = program_.ops.size(); k-- > 0;) {
    op& o = *program_.ops[k];
    for (weight* w : o.weights())
      if (!w->first_writer) w->first_writer = &o;
    for (edge& e : o.inputs()) e.add = std::exchange(written[memory_of(e.from)], true);
  }
}

// Weights in the order in which their gradients become ready: that of the first op that uses them, from the last to
// the first; sparse tables and states follow.
void compiler::finish() {
  for (loss* l : program_.losses) {
    l->first_sum = program_.metric_sums;
    program_.metric_sums += l->metric_sums();
    if (l->counts()) l->count_kind = static_cast<int>(program_.count_kinds++);
  }
  std::map<const weight*, std::size_t> first_use;
  for (std::size_t k = program_.ops.size(); k-- > 0;)
    for (const weight* w : program_.ops[k]->weights()) first_use[w] = k;
  for (const auto& w : tensors_)
    if (!first_use.contains(w.get())) throw rg::error(RG_E_CONFIG, "tensor " + w->name + ": no layer uses it");
  std::stable_sort(tensors_.begin(), tensors_.end(), [&](const auto& a, const auto& b) {
    if (a->info.kind != b->info.kind) return a->info.kind < b->info.kind; // as abi.h numbers them
    return first_use.at(a.get()) > first_use.at(b.get());
  });
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    weight& w = *tensors_[i];
    w.index = static_cast<std::uint32_t>(i);
    w.info.name = w.name.c_str();
    w.info.storage = w.elements;
    if (w.sparse) w.info.max_rows = w.sparse->most_rows(program_.batch, w.info);
  }
  program_.weights = std::move(tensors_);
  program_.unit = graph_.unit ? graph_.unit : "samples";
  for (std::size_t i = 0; i < program_.inputs.size(); ++i) program_.inputs[i].name = program_.input_names[i].c_str();
}

void compile(const rg_graph& graph, program& p) {
  compiler(graph, p).run();
}

} // namespace cudnn

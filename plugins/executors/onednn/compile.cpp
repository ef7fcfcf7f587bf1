// SPDX-License-Identifier: Apache-2.0
#include "compile.hpp"

#include "compiler.hpp"
#include "layers.hpp"

#include <algorithm>

namespace onednn {
namespace {

// Some ops are for sequences, too.
compile_function rule_for(const node& n, bool of_sequence) {
  const auto first = of_sequence ? sequence_rules() : blocked_rules();
  const auto second = of_sequence ? blocked_rules() : sequence_rules();
  for (const auto& rules : {dense_rules(), first, second, loss_rules(), sparse_rules()})
    for (const compile_rule& r : rules)
      if (r.op == n.op) return r.compile;
  throw rg::error(RG_E_UNSUPPORTED, "layer " + n.name + ": the oneDNN executor has no op " + std::string(n.op));
}

} // namespace

compiler::compiler(const rg_graph& g, program& p)
    : graph_(g), program_(p), nodes_(executors::read_nodes(g)), values_(g.node_count) {}

void compiler::run() {
  read_tensors();
  for (std::size_t k = 0; k < nodes_.size(); ++k) {
    node& n = nodes_[k];
    if (n.done) continue;
    n.done = true;
    if (n.op == "input")
      add_input(k);
    else
      rule_for(n, !n.inputs.empty() && nodes_[n.inputs[0]].shape.size() == 2)(*this, k);
  }
  finish();
}

void compiler::read_tensors() {
  uses_.resize(graph_.tensor_count);
  for (const node& n : nodes_)
    for (std::uint32_t w : n.weights) ++uses_[w];
  for (std::uint32_t t = 0; t < graph_.tensor_count; ++t) {
    auto w = std::make_unique<weight>();
    w->info = rg::copy_versioned(rg::at_stride(graph_.tensors, t));
    w->name = w->info.name ? w->info.name : "";
    w->graph_index = t;
    auto wrong = [&](const char* why) { throw rg::error(RG_E_CONFIG, "tensor " + w->name + ": " + why); };
    if (w->info.kind == RG_TENSOR_ROWS) {
      if (w->info.ndim != 2) wrong("a sparse table needs rows and columns");
      w->sparse = std::make_unique<sparse_table>();
    } else if (w->info.kind != RG_TENSOR_DENSE && w->info.kind != RG_TENSOR_STATE) {
      wrong("is of an unknown kind");
    }
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

weight* compiler::tensor(const node& n, std::size_t i, const std::vector<std::size_t>& shape, std::uint32_t kind) {
  n.expect(i < n.weights.size(), "has too few weights");
  weight* w = tensors_[n.weights[i]].get();
  n.expect(w->info.kind == kind && w->info.ndim == shape.size() &&
               std::equal(shape.begin(), shape.end(), w->info.shape,
                          [](std::size_t a, std::int64_t b) { return static_cast<std::int64_t>(a) == b; }),
           "has a weight of the wrong kind or shape");
  return w;
}

weight* compiler::table(const node& n, std::size_t i) {
  n.expect(i < n.weights.size(), "has too few weights");
  weight* w = tensors_[n.weights[i]].get();
  n.expect(w->info.kind != RG_TENSOR_STATE && w->info.ndim == 2, "needs a table of rows");
  return w;
}

weight* compiler::matrix(const node& n, std::size_t i, std::size_t columns) {
  n.expect(i < n.weights.size(), "has too few weights");
  const rg_tensor& t = tensors_[n.weights[i]]->info;
  return tensor(n, i, {static_cast<std::size_t>(t.ndim == 2 ? t.shape[0] : 0), columns});
}

node* compiler::follower(std::size_t k) {
  return nodes_[k].consumers.size() == 1 ? &nodes_[nodes_[k].consumers[0]] : nullptr;
}

const node& compiler::source(const node& n, std::size_t i) const {
  n.expect(i < n.inputs.size(), "has too few inputs");
  return nodes_[n.inputs[i]];
}

value* compiler::make_value(const std::string& name, const std::vector<std::size_t>& shape, bool plain) {
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

void compiler::add(std::unique_ptr<op> o) {
  bool gradient = false;
  for (edge& e : o->inputs()) {
    ++e.from->consumers;
    gradient = gradient || e.from->needs_gradient;
  }
  for (const weight* w : o->weights()) gradient = gradient || w->info.kind != RG_TENSOR_STATE;
  o->output().needs_gradient = gradient;
  program_.ops.push_back(std::move(o));
}

value* compiler::input(const node& n, std::size_t i) {
  n.expect(i < n.inputs.size(), "has too few inputs");
  value* v = values_[n.inputs[i]];
  return v ? as_type(v, false) : v;
}
value* compiler::indices(const node& n, std::size_t i, std::size_t elements) {
  value* v = input(n, i);
  n.expect(v && v->input >= 0 && program_.inputs[static_cast<std::size_t>(v->input)].type == RG_I32 &&
               v->elements() == elements,
           "takes an input of the network's there: RG_I32, one for each of its elements");
  return v;
}

value* compiler::blocked(const node& n, std::size_t i) {
  return as_type(either(n, i), false);
}

value* compiler::either(const node& n, std::size_t i) {
  n.expect(i < n.inputs.size(), "has too few inputs");
  value* v = values_[n.inputs[i]];
  if (!v->plain) return v;
  value*& copy = blocked_[v];
  if (!copy) {
    copy = make_value(v->name + " blocked", {v->channels, v->height, v->width});
    emit<relayout>(v->name + " to blocks", v, copy, true, dev());
  }
  return copy;
}

value* compiler::as_type(value* v, bool half) {
  if (v->half == half) return v;
  value*& copy = converted_[v];
  if (!copy) {
    copy = make_value(v->name + (half ? " in bf16" : " in fp32"), {v->channels, v->height, v->width}, v->plain);
    copy->half = half;
    emit<conversion>(v->name + (half ? " to bf16" : " to fp32"), v, copy, dev());
  }
  return copy;
}

void compiler::add_input(std::size_t k) {
  auto in = rg::copy_versioned(rg::at_stride(graph_.inputs, static_cast<std::size_t>(k)));
  program_.input_names.push_back(in.name ? in.name : "");
  program_.inputs.push_back(in);
  value* v = make_value(nodes_[k].name, nodes_[k].shape, true);
  v->input = static_cast<int>(k);
  nodes_[k].expect(in.kind == RG_INPUT_INDEX || in.type == RG_F32, "numbers come as RG_F32");
  values_[k] = v;
}

weight* compiler::bias_of(std::size_t k, std::size_t outputs) {
  const node& n = nodes_[k];
  if (n.weights.size() < 2) return nullptr;
  weight* bias = tensor(n, 1, {outputs});
  const node* next = follower(k);
  if (!next || next->op != "batch_norm" || uses_[n.weights[1]] != 1) return bias;
  folded_[nodes_[k].consumers[0]] = bias;
  return nullptr;
}

weight* compiler::folded(std::size_t k) const {
  const auto found = folded_.find(k);
  return found == folded_.end() ? nullptr : found->second;
}

bool compiler::is_loss(const value* v) const {
  return std::any_of(program_.losses.begin(), program_.losses.end(), [&](loss* l) { return &l->output() == v; });
}

// The last node is a loss or adds up some; every loss is that node or part of it.
void compiler::check_end() const {
  const std::size_t last = nodes_.size() - 1;
  if (nodes_.empty() || (nodes_[last].op != "sum_of_losses" && !is_loss(values_[last])))
    throw rg::error(RG_E_UNSUPPORTED, "the network must end in a loss, such as softmax_cross_entropy");
  for (std::size_t k = 0; k < last; ++k) {
    if (is_loss(values_[k]))
      nodes_[k].expect(nodes_[k].consumers == std::vector<std::size_t>{last},
                       "is a loss, but not added to the last one");
    else
      nodes_[k].expect(nodes_[k].op == "input" || !nodes_[k].consumers.empty(), "is read by nobody");
  }
}

// Puts the weights in the order in which their gradients become ready: that of the first op that uses them, from the
// last to the first; sparse tables and states follow.
void compiler::finish() {
  check_end();
  for (loss* l : program_.losses) {
    l->first_sum = program_.metric_sums;
    program_.metric_sums += l->metric_sums();
    if (l->counts()) l->count_kind = static_cast<int>(program_.count_kinds++);
  }
  std::map<const weight*, std::size_t> first_use;
  for (std::size_t k = program_.ops.size(); k-- > 0;)
    for (weight* w : program_.ops[k]->weights()) {
      if (!w->first_writer) w->first_writer = program_.ops[k].get();
      first_use[w] = k;
    }
  std::stable_sort(tensors_.begin(), tensors_.end(), [&](const auto& a, const auto& b) {
    if (a->info.kind != b->info.kind) return a->info.kind < b->info.kind; // as abi.h numbers them
    return first_use.at(a.get()) > first_use.at(b.get());
  });
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    weight& w = *tensors_[i];
    w.index = static_cast<std::uint32_t>(i);
    w.info.name = w.name.c_str();
    if (w.sparse) w.info.max_rows = w.sparse->most_rows(program_.batch, w.info);
    w.info.storage =
        w.info.ndim == 1 ? round_up(static_cast<std::size_t>(w.info.shape[0])) : w.layout.get_size() / sizeof(float);
  }
  program_.weights = std::move(tensors_);
  program_.unit = graph_.unit ? graph_.unit : "samples";
  for (std::size_t i = 0; i < program_.inputs.size(); ++i) program_.inputs[i].name = program_.input_names[i].c_str();
}

void compile(const rg_graph& graph, program& p) {
  compiler(graph, p).run();
}

} // namespace onednn

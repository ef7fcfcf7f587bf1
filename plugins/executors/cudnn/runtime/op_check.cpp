// SPDX-License-Identifier: Apache-2.0
#include "runtime/op_check.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <regatta/ext/graph.h>

namespace cudnn {

struct op_check::subject {
  const op& of;
  const char* pass;
  std::string text() const { return "op " + of.kind + " of layer " + of.name() + ", " + pass + " pass"; }
};
struct op_check::tensor {
  std::string name;
  std::size_t per_sample; // 0: not one of a sample's
  std::string text(std::size_t i) const {
    if (per_sample == 0) return name + " at element " + std::to_string(i);
    return name + " at sample " + std::to_string(i / per_sample) + ", element " + std::to_string(i % per_sample);
  }
};

namespace {

// An element of a tensor may differ from the CPU's by `relative` times the largest element of the tensor, plus eight
// times the largest change that relative changes of `rounding` of all inputs cause: a sum whose terms cancel has no
// better accuracy. The largest differences in tests (debug_*_test, emulated GPU) are 1.5 % of this limit in fp32, 6 %
// in fp16 and 16 % in bf16. `rounding`: 2 to 16 units in the last place of the type that is multiplied.
struct tolerance {
  double relative, rounding;
};
tolerance tolerance_of(const precision& p) {
  if (p.type == dtype::bf16) return {0x1p-5, 0x1p-8};
  if (p.type == dtype::f16 || p.tf32) return {0x1p-7, 0x1p-10};
  return {1e-4, 0x1p-20};
}

// Changes each element relatively by +-by; the signs do not depend on the values.
void disturb(std::vector<double>& v, double by) {
  std::uint64_t state = 1;
  for (double& x : v) {
    state = state * 6364136223846793005 + 1442695040888963407; // Knuth, TAOCP 2, 3.3.4: line 26
    x *= 1 + (state >> 63 ? by : -by);
  }
}

std::string text(double x) {
  char s[32];
  std::snprintf(s, sizeof s, "%.7g", x);
  return s;
}

[[noreturn]] void fail_not_finite(const std::string& subject, const std::string& element, double x) {
  throw rg::error(RG_E_OPERATION, subject + ": " + element + ": expected a finite number, got " + text(x) +
                                      " (train.debug = \"sync\"; everything before it was finite)");
}

const value* owner_of(const value* v) {
  while (v->alias) v = v->alias;
  return v;
}

} // namespace

op_check::op_check(const device& d, const program& p, const rg_graph& graph)
    : device_(d), program_(p), reference_(graph, reference::interpreter::tables::rows_of_a_step) {
  for (const auto& v : p.values)
    if (v->node >= 0) nodes_in_memory_[owner_of(v.get())].push_back(static_cast<std::size_t>(v->node));
}

void op_check::begin(const run& r) {
  batch_.samples = r.samples();
  batch_.seed = r.batch.seed;
  batch_.step = r.batch.step;
  batch_.first_sample = r.batch.first_sample;
  batch_.global_samples = r.batch.global_samples;
  batch_.label_weight = 1; // the device's losses are sums, too
  known_.assign(reference_.values.size(), false);
  nodes_of_.clear();
  backward_begins_ = true;
  for (std::size_t t = 0; t < program_.tables.size(); ++t) {
    const auto rows = rg::copy_versioned(rg::at_stride(r.batch.tables, t));
    reference_.rows[program_.tables[t]->graph_index].assign(rows.rows, rows.rows + rows.count);
  }
}

void op_check::before_forward(op& o, const run& r) {
  if (&o == program_.ops.front().get()) begin(r);
  const subject s{o, "forward"};
  for (const edge& e : o.inputs()) read_input(s, *owner_of(e.from));
  for (const weight* w : o.weights()) reference_.tensors[w->graph_index] = read(s, {w->name, 0}, *w, w->data);
}

void op_check::after_forward(op& o, const run& r) {
  const subject s{o, "forward"};
  wait(s);
  const value& v = o.output();
  if (v.node < 0) { // not a value of the graph
    read(s, {"output " + v.name, v.elements()}, v, v.data, r.samples());
    return;
  }
  const auto k = static_cast<std::size_t>(v.node);
  std::vector<std::size_t>& nodes = nodes_of_[&o];
  find_nodes(k, nodes);
  const auto compute = [&] {
    for (std::size_t n : nodes) reference_.forward_node(n, batch_, r.training);
  };
  // The first run, with disturbed inputs, must leave no trace: the second one sets what a backward pass reads.
  std::map<std::size_t, numbers> inputs, tensors, disturbed_states;
  for (std::size_t n : nodes)
    for (std::uint32_t i : reference_.inputs_of(n)) {
      const bool ids = reference_.is_input(i) && program_.inputs[i].type != RG_F32;
      if (!ids && std::find(nodes.begin(), nodes.end(), i) == nodes.end()) inputs[i] = reference_.values[i];
    }
  for (const weight* w : o.weights()) tensors[w->graph_index] = reference_.tensors[w->graph_index];
  const double by = tolerance_of(device_.computes).rounding;
  for (const auto& [i, x] : inputs) disturb(reference_.values[i], by);
  for (const auto& [t, x] : tensors) disturb(reference_.tensors[t], by);
  compute();
  const numbers disturbed = reference_.values[k];
  for (auto& [i, x] : inputs) reference_.values[i] = std::move(x);
  for (auto& [t, x] : tensors) disturbed_states[t] = std::exchange(reference_.tensors[t], std::move(x));
  compute();
  check_output(o, s, r, disturbed);
  for (const weight* w : o.weights())
    if (w->info.kind == RG_TENSOR_STATE)
      compare(s, {w->name, 0}, read(s, {w->name, 0}, *w, w->data), reference_.tensors[w->graph_index],
              disturbed_states[w->graph_index]);
}

// The output of a loss has no memory of its own.
void op_check::check_output(op& o, const subject& s, const run& r, const numbers& disturbed) {
  const value& v = o.output();
  const numbers& expected = reference_.values[static_cast<std::size_t>(v.node)];
  const auto* l = dynamic_cast<const loss*>(&o);
  if (!l) {
    const tensor t{"output " + v.name, v.elements()};
    const numbers actual = read(s, t, v, v.data, r.samples());
    compare(s, t, actual, expected, disturbed);
    set_value(v, actual);
  } else if (r.training) {
    double sum = 0, expected_sum = 0, disturbed_sum = 0;
    device_.download(&sum, r.losses + l->number, sizeof sum);
    for (double x : expected) expected_sum += x;
    for (double x : disturbed) disturbed_sum += x;
    const tensor t{"the loss, summed over the batch,", 0};
    if (!std::isfinite(sum)) fail_not_finite(s.text(), t.text(0), sum);
    compare(s, t, {sum}, {expected_sum}, {disturbed_sum});
  }
}

void op_check::before_backward(op& o, const run& r) {
  if (device_.computes.type == dtype::f16) return;
  if (std::exchange(backward_begins_, false)) reference_.clear_gradients();
  const subject s{o, "backward"};
  wait(s);
  for (const weight* w : o.weights()) {
    if (w->info.kind == RG_TENSOR_STATE) continue;
    numbers& g = reference_.gradients[w->graph_index];
    if (w->sparse || r.accumulate || w->first_writer != &o)
      g = read(s, {"gradient of " + w->name, 0}, *w, w->gradient);
    else
      g.assign(w->elements, 0);
  }
  if (const auto* l = dynamic_cast<const loss*>(&o))
    reference_.value_gradients[static_cast<std::size_t>(o.output().node)].assign(batch_.samples,
                                                                                 1 / l->divisor(r.batch));
}

void op_check::after_backward(op& o, const run&) {
  const subject s{o, "backward"};
  wait(s);
  if (device_.computes.type == dtype::f16) return;
  const std::vector<std::size_t>& nodes = nodes_of_[&o];
  const auto compute = [&] {
    for (std::size_t n : nodes)
      if (n != nodes.back()) reference_.value_gradients[n].assign(reference_.values[n].size(), 0);
    for (std::size_t i = nodes.size(); i-- > 0;) reference_.backward_node(nodes[i], batch_);
  };
  // As in the forward pass: once with a disturbed gradient of the output, then with the real one.
  std::map<std::size_t, numbers> values, weights, disturbed_values, disturbed_weights;
  for (std::size_t n : nodes)
    for (std::uint32_t i : reference_.inputs_of(n)) values[i] = reference_.value_gradients[i];
  for (const weight* w : o.weights()) weights[w->graph_index] = reference_.gradients[w->graph_index];
  if (!nodes.empty()) {
    numbers dy = reference_.value_gradients[nodes.back()];
    disturb(reference_.value_gradients[nodes.back()], tolerance_of(device_.computes).rounding);
    compute();
    reference_.value_gradients[nodes.back()] = std::move(dy);
  }
  for (auto& [i, x] : values) disturbed_values[i] = std::exchange(reference_.value_gradients[i], std::move(x));
  for (auto& [t, x] : weights) disturbed_weights[t] = std::exchange(reference_.gradients[t], std::move(x));
  compute();
  for (const edge& e : o.inputs()) {
    const value& v = *e.from;
    if (!v.gradient) continue;
    const tensor t{"gradient of " + v.name, v.elements()};
    const numbers actual = read(s, t, v, v.gradient, batch_.samples);
    if (v.node < 0 || nodes.empty()) continue;
    const auto i = static_cast<std::size_t>(v.node);
    compare(s, t, actual, reference_.value_gradients[i], disturbed_values[i]);
    set_gradient(v, actual);
  }
  for (const weight* w : o.weights()) {
    if (w->info.kind == RG_TENSOR_STATE) continue;
    const tensor t{"gradient of " + w->name, 0};
    compare(s, t, read(s, t, *w, w->gradient), reference_.gradients[w->graph_index], disturbed_weights[w->graph_index]);
  }
}

void op_check::wait(const subject& s) const {
  cuda::check(cudaStreamSynchronize(device_.stream), s.text().c_str());
}

op_check::numbers op_check::read(const subject& s, const tensor& t, const weight& w, const float* at) {
  std::vector<float> x(w.sparse ? w.sparse->count * w.row() : w.elements);
  if (!x.empty()) device_.download(x.data(), at, x.size() * sizeof(float));
  for (std::size_t i = 0; i < x.size(); ++i)
    if (!std::isfinite(x[i])) fail_not_finite(s.text(), t.text(i), x[i]);
  return {x.begin(), x.end()};
}

op_check::numbers op_check::read(const subject& s, const tensor& t, const value& v, const void* at,
                                 std::size_t samples) {
  numbers out(samples * v.elements());
  if (out.empty()) return out;
  copy_.resize(out.size() * size_of(v.type));
  device_.download(copy_.data(), at, copy_.size());
  by_type(v.type, [&](auto type) {
    const auto* x = as(type, static_cast<const void*>(copy_.data()));
    for (std::size_t i = 0; i < out.size(); ++i) {
      const element_position p = position_of(v.layout, static_cast<std::uint32_t>(i));
      out[p.sample * v.elements() + std::size_t{p.channel} * v.layout.spatial + p.position] = to_float(x[i]);
    }
  });
  for (std::size_t i = 0; i < out.size(); ++i)
    if (!std::isfinite(out[i])) fail_not_finite(s.text(), t.text(i), out[i]);
  return out;
}

void op_check::read_input(const subject& s, const value& v) {
  if (v.input < 0 || known_[static_cast<std::size_t>(v.node)]) return;
  if (program_.inputs[static_cast<std::size_t>(v.input)].type == RG_F32) {
    set_value(v, read(s, {"input " + v.name, v.elements()}, v, v.data, batch_.samples));
    return;
  }
  std::vector<std::int32_t> ids(batch_.samples * v.elements());
  if (!ids.empty()) device_.download(ids.data(), v.data, ids.size() * sizeof(std::int32_t));
  set_value(v, {ids.begin(), ids.end()});
}

void op_check::compare(const subject& s, const tensor& t, const numbers& actual, const numbers& expected,
                       const numbers& disturbed) const {
  double largest = 0, change = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    change = std::max(change, std::abs(disturbed[i] - expected[i]));
  }
  const double limit = tolerance_of(device_.computes).relative * largest + 8 * change;
  std::size_t first = actual.size(), count = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (std::abs(actual[i] - expected[i]) <= limit) continue;
    first = std::min(first, i);
    ++count;
  }
  if (count == 0) return;
  throw rg::error(RG_E_OPERATION, s.text() + ": " + t.text(first) + ": expected " + text(expected[first]) + " +- " +
                                      text(limit) + ", got " + text(actual[first]) + "; " + std::to_string(count) +
                                      " of " + std::to_string(actual.size()) +
                                      " elements differ (train.debug = \"sync\": the CPU computes each op from the "
                                      "same inputs, and the ops before this one agree)");
}

void op_check::find_nodes(std::size_t node, std::vector<std::size_t>& nodes) {
  if (known_[node]) return;
  for (std::uint32_t i : reference_.inputs_of(node)) find_nodes(i, nodes);
  known_[node] = true;
  nodes.push_back(node);
}

// The device's values replace the reference's. Values that share memory also share the gradient.
void op_check::set_value(const value& v, const numbers& x) {
  for (std::size_t n : nodes_in_memory_[owner_of(&v)]) {
    reference_.values[n] = x;
    known_[n] = true;
  }
}

void op_check::set_gradient(const value& v, const numbers& x) {
  for (std::size_t n : nodes_in_memory_[owner_of(&v)]) reference_.value_gradients[n] = x;
}

} // namespace cudnn

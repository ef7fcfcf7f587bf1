// SPDX-License-Identifier: Apache-2.0
//
// Compile functions that fuse batch norm or layer norm with the nodes around it.
#include "ops/normalization.hpp"
#include "compile/compiler.hpp"

#include <tuple>

namespace onednn {

bool fusible_pool(const compiler& c, const node& n) {
  const node& in = c.source(n, 0);
  return in.shape.size() == 3 && n.count("kernel") == 2 && n.count("stride") == 2 && n.count("padding") == 0 &&
         in.shape[1] % 2 == 0 && in.shape[2] % 2 == 0;
}

namespace {

// Fuses node k into `s` as its next stage.
void take(compiler& c, std::size_t k, batch_norm_stages& s) {
  node& n = c.at(k);
  n.done = true;
  const node& in = c.source(n, 0);
  if (n.op == "max_pool") {
    s.pool = true;
    n.expect(n.shape == std::vector<std::size_t>{in.shape[0], in.shape[1] / 2, in.shape[2] / 2},
             "its output must have half the size of its input");
    return;
  }
  executors::expect_same_shape(c, n);
  if (n.op == "relu") {
    s.relu = true;
  } else if (n.op == "dropout") {
    std::tie(s.dropout, s.layer) = executors::read_dropout(n);
  } else {
    n.expect(!n.shape.empty(), "needs channels");
    s.norm = true;
    s.sync = n.op == "sync_batch_norm";
    s.epsilon = n.attr("epsilon");
    s.momentum = n.attr("momentum");
    const std::vector<std::size_t> channels = {n.shape[0]};
    s.scale = c.tensor(n, 0, channels);
    s.bias = c.tensor(n, 1, channels);
    s.mean = c.tensor(n, 2, channels, RG_TENSOR_STATE);
    s.variance = c.tensor(n, 3, channels, RG_TENSOR_STATE);
    s.folded = c.folded(k);
  }
}

// If the only consumer of batch norm `last` is an addition, and the addition's other input is already computed, returns
// that input; else null.
value* residual_of(compiler& c, std::size_t last) {
  const node* next = c.follower(last);
  if (!next || next->done || next->op != "add" || c.at(last).shape.size() != 3) return nullptr;
  const std::size_t other = next->inputs[next->inputs[0] == last ? 1 : 0];
  return other < last && c.at(other).shape == next->shape && c.output(other) && !c.output(other)->plain
             ? c.output(other)
             : nullptr;
}

// Fuses node k into `s` as its next stage. `from` is the node whose output it consumes.
void take(compiler& c, std::size_t k, std::size_t from, layer_norm_stages& s) {
  node& n = c.at(k);
  n.done = true;
  executors::expect_same_shape(c, n);
  if (n.op == "dropout") {
    std::tie(s.dropout, s.layer) = executors::read_dropout(n);
  } else if (n.op == "add") {
    n.expect(n.shape == c.source(n, 1).shape, "adds different shapes");
    s.residual = c.sequence(n, n.inputs[0] == from ? 1 : 0);
  } else {
    s.scale = c.tensor(n, 0, {n.shape[1]});
    s.bias = c.tensor(n, 1, {n.shape[1]});
    s.epsilon = n.attr("epsilon");
  }
}

int stage_of(std::string_view op) {
  return op == "dropout" ? 1 : op == "add" ? 2 : op == "layer_norm" ? 3 : 0;
}

} // namespace

// Compiles node k and fuses the nodes after it, as long as each is of a later stage and is the only consumer of the
// value before it.
void compile_batch_norm(compiler& c, std::size_t k) {
  const node first = c.at(k);
  value *in = c.either(first, 0), *residual = nullptr;
  batch_norm_stages s;
  auto rank = [&](const node& n) {
    if (is_batch_norm(n)) return 1;
    if (n.op == "relu") return 3;
    return n.op == "dropout" || (n.op == "max_pool" && !residual && fusible_pool(c, n)) ? 4 : 0;
  };
  std::size_t last = k;
  take(c, k, s);
  if (s.norm) residual = residual_of(c, last);
  if (residual) {
    residual = c.as_type(residual, in->half);
    last = c.at(last).consumers[0];
    c.at(last).done = true;
  }
  int reached = residual ? 2 : rank(c.at(last));
  while (reached < 4) {
    const node* next = c.follower(last);
    if (!next || next->done || rank(*next) <= reached) break;
    last = c.at(last).consumers[0];
    take(c, last, s);
    reached = rank(c.at(last));
  }
  value* out = c.make_value(first.name, c.at(last).shape);
  out->half = in->half;
  c.output(last) = out;
  if (in->half)
    c.emit<fused_batch_norm<bf16>>(first.name, in, residual, out, s, c.dev());
  else
    c.emit<fused_batch_norm<float>>(first.name, in, residual, out, s, c.dev());
}

// Compiles node k and fuses the nodes after it, as long as each is of a later stage, is the only consumer of the value
// before it, and, for an addition, its other input is already computed.
void compile_layer_norm(compiler& c, std::size_t k) {
  const node first = c.at(k);
  value* in = c.sequence(first, 0);
  layer_norm_stages s;
  take(c, k, first.inputs[0], s);
  std::size_t last = k;
  while (const node* next = c.follower(last)) {
    if (next->done || stage_of(next->op) <= stage_of(c.at(last).op)) break;
    if (next->op == "add") {
      const std::size_t other = next->inputs[0] == last ? next->inputs[1] : next->inputs[0];
      if (!c.output(other)) break;
    }
    const std::size_t from = last;
    last = c.at(last).consumers[0];
    take(c, last, from, s);
  }
  c.output(last) = c.make_value(first.name, first.shape, true);
  c.emit<fused_layer_norm>(first.name, in, c.output(last), s, c.dev());
}

} // namespace onednn

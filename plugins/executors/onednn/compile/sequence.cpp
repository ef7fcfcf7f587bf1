// SPDX-License-Identifier: Apache-2.0
//
// Compile functions of ops on sequences: values [positions, features], row-major.
#include "ops/sequence.hpp"
#include "compile/compiler.hpp"
#include "ops/attention.hpp"
#include "ops/embedding.hpp"
#include "ops/token_loss.hpp"

#include <tuple>

namespace onednn {
namespace {

using shape = std::vector<std::size_t>;

// Input i of n, which must be a sequence, converted to bf16 if `half` is set and to fp32 otherwise.
value* sequence(compiler& c, const node& n, std::size_t i, bool half = false) {
  n.expect(c.source(n, i).shape.size() == 2, "takes a sequence: places and features");
  value* v = c.stored(n, i);
  n.expect(v->plain, "takes a row-major sequence");
  return c.as_type(v, half);
}

void compile_embedding(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  executors::expect_embedding(c, n);
  value* indices = c.indices(n, 0, n.shape[0]);
  weight* table = c.matrix(n, 0, n.shape[1]);
  weight* places = n.weights.size() > 1 ? c.matrix(n, 1, n.shape[1]) : nullptr;
  n.expect(!places || places->elements >= n.elements(), "has too few rows for its places");
  c.output(k) = c.make_value(n.name, n.shape, true);
  c.emit<token_embedding>(n.name, indices, c.output(k), table, places, n.attr("scale"), n.attr("sinusoids") != 0,
                          c.dev());
}

void compile_row_map(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  value* in = sequence(c, n, 0);
  executors::expect_same_shape(c, n);
  c.output(k) = c.make_value(n.name, n.shape, true);
  c.emit<row_map>(n.name, in, c.output(k), function_named(n.op), c.dev());
}

// Fuses node k into `s` as its next stage. `from` is the node whose output it consumes.
void take(compiler& c, std::size_t k, std::size_t from, row_stages& s) {
  node& n = c.at(k);
  n.done = true;
  executors::expect_same_shape(c, n);
  if (n.op == "dropout") {
    std::tie(s.dropout, s.layer) = executors::read_dropout(n);
  } else if (n.op == "add") {
    n.expect(n.shape == c.source(n, 1).shape, "adds different shapes");
    s.residual = sequence(c, n, n.inputs[0] == from ? 1 : 0);
  } else {
    s.scale = c.tensor(n, 0, {n.shape[1]});
    s.bias = c.tensor(n, 1, {n.shape[1]});
    s.epsilon = n.attr("epsilon");
  }
}

int stage_of(std::string_view op) {
  return op == "dropout" ? 1 : op == "add" ? 2 : op == "layer_norm" ? 3 : 0;
}

// Compiles node k and fuses the nodes after it, as long as each is of a later stage, is the only consumer of the value
// before it, and, for an addition, its other input is already computed.
void compile_stages(compiler& c, std::size_t k) {
  const node first = c.at(k);
  value* in = sequence(c, first, 0);
  row_stages s;
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
  c.emit<row_stage>(first.name, in, c.output(last), s, c.dev());
}

void compile_attention(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  const bool half = c.dev().half;
  value *query = sequence(c, n, 0, half), *key = sequence(c, n, 1, half), *values = sequence(c, n, 2, half);
  value* indices = c.indices(n, 3, places(*key));
  const executors::attention_shape s = executors::read_attention(c, n);
  c.output(k) = c.make_value(n.name, n.shape, true);
  c.output(k)->half = half;
  c.emit<attention>(n.name, query, key, values, indices, c.output(k), s, c.dev());
}

void compile_take_places(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  value* in = sequence(c, n, 0);
  n.expect(n.shape.size() == 2 && n.shape[1] == features(*in), "its output has not the features of its input");
  value* indices = n.op == "take_places" ? c.indices(n, 1, n.shape[0]) : nullptr;
  n.expect(indices || n.shape[0] == 1, "makes one place");
  c.output(k) = c.make_value(n.name, n.shape, true);
  c.emit<take_places>(n.name, in, indices, c.output(k), c.dev());
}

void compile_token_loss(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  value* logits = sequence(c, n, 0);
  value* labels = c.indices(n, 1, places(*logits));
  n.expect(logits->input < 0, "takes what a layer makes");
  c.output(k) = c.make_value(n.name, {1});
  c.emit<token_cross_entropy>(n.name, logits, labels, c.output(k), executors::read_smoothing(n),
                              n.attr("accuracy") != 0, c.dev());
}

} // namespace

std::span<const compile_rule> sequence_rules() {
  static constexpr compile_rule rules[] = {
      {"embedding", compile_embedding},
      {"gelu", compile_row_map},
      {"tanh", compile_row_map},
      {"relu", compile_row_map},
      {"dropout", compile_stages},
      {"add", compile_stages},
      {"layer_norm", compile_stages},
      {"attention", compile_attention},
      {"take_places", compile_take_places},
      {"first_place", compile_take_places},
      {"token_cross_entropy", compile_token_loss},
  };
  return rules;
}

} // namespace onednn

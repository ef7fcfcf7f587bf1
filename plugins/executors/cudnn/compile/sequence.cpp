// SPDX-License-Identifier: Apache-2.0
//
// Sequences, whose values are [positions, features], and lookups in tables.
#include "ops/attention.hpp"
#include "compile/compiler.hpp"
#include "ops/embedding.hpp"

namespace cudnn {
namespace {

value* sequence(compiler& c, const node& n, std::size_t i) {
  n.expect(c.source(n, i).shape.size() == 2, "takes a sequence: places and features");
  return c.input(n, i);
}

void compile_embedding(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  executors::expect_embedding(c, n);
  value* indices = c.indices(n, 0, n.shape[0]);
  weight* table = c.matrix(n, 0, n.shape[1]);
  weight* of_places = n.weights.size() > 1 ? c.matrix(n, 1, n.shape[1]) : nullptr;
  n.expect(!of_places || of_places->elements >= n.elements(), "has too few rows for its places");
  c.emit<token_embedding>(n.name, indices, c.make_output(k), table, of_places, n.attr("scale"),
                          n.attr("sinusoids") != 0);
}

void compile_layer_norm(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  value* in = sequence(c, n, 0);
  executors::expect_same_shape(c, n);
  weight *scale = c.tensor(n, 0, {n.shape[1]}), *bias = c.tensor(n, 1, {n.shape[1]});
  c.emit<layer_norm>(n.name, in, c.make_output(k), scale, bias, n.attr("epsilon"));
}

void compile_attention(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  value *query = sequence(c, n, 0), *key = sequence(c, n, 1), *values = sequence(c, n, 2);
  value* indices = c.indices(n, 3, places(*key));
  c.emit<attention>(n.name, query, key, values, indices, c.make_output(k), executors::read_attention(c, n));
}

void compile_take_places(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  value* in = sequence(c, n, 0);
  n.expect(n.shape.size() == 2 && n.shape[1] == features(*in), "its output has not the features of its input");
  value* indices = n.op == "take_places" ? c.indices(n, 1, n.shape[0]) : nullptr;
  n.expect(indices || n.shape[0] == 1, "makes one place");
  c.emit<take_places>(n.name, in, indices, c.make_output(k));
}

void compile_lookup(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  weight* table = c.table(n, 0);
  const executors::lookup_shape s = executors::read_lookup(c, n, *table);
  c.emit<lookup>(n.name, c.indices(n, 0, s.ids), c.make_output(k), table, s.padding, s.sum);
}

constexpr compile_rule rules[] = {
    {"embedding", compile_embedding},     {"layer_norm", compile_layer_norm},   {"attention", compile_attention},
    {"take_places", compile_take_places}, {"first_place", compile_take_places}, {"sparse_embedding", compile_lookup},
    {"embedding_bag", compile_lookup},
};

} // namespace

std::span<const compile_rule> sequence_rules() {
  return rules;
}

} // namespace cudnn

// SPDX-License-Identifier: Apache-2.0
//
// Compile functions of the ops of regatta/layers_sparse.hpp.
#include "compile/compiler.hpp"
#include "ops/sparse_embedding.hpp"
#include "ops/vectors.hpp"

namespace onednn {
namespace {

void compile_lookup(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  weight* table = c.table(n, 0);
  const executors::lookup_shape s = executors::read_lookup(c, n, *table);
  value* in = c.indices(n, 0, s.ids);
  c.output(k) = c.make_value(n.name, n.shape);
  c.emit<embedding>(n.name, in, c.output(k), table, s.padding, s.sum, c.dev());
}

void compile_concat(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  executors::expect_concatenation(c, n);
  std::vector<value*> parts;
  for (std::size_t i = 0; i < n.inputs.size(); ++i) parts.push_back(c.input(n, i));
  c.output(k) = c.make_value(n.name, n.shape);
  c.emit<concatenation>(n.name, parts, c.output(k), c.dev());
}

void compile_softsign(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  value* in = c.blocked(n, 0);
  executors::expect_same_shape(c, n);
  c.output(k) = c.make_value(n.name, n.shape);
  c.emit<softsign>(n.name, in, c.output(k), c.dev());
}

void compile_cosine(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  executors::expect_cosine(c, n);
  value *a = c.blocked(n, 0), *b = c.blocked(n, 1);
  c.output(k) = c.make_value(n.name, {1});
  c.emit<cosine>(n.name, a, b, c.output(k), c.dev());
}

void compile_auc(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  const std::size_t buckets = executors::read_buckets(c, n);
  value *logits = c.input(n, 0), *label = c.indices(n, 1, 1);
  c.output(k) = c.make_value(n.name, {1});
  c.emit<auc_cross_entropy>(n.name, logits, label, c.output(k), buckets);
}

void compile_hinge(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  executors::expect_pair(c, n);
  c.output(k) = c.make_value(n.name, {1});
  c.emit<pairwise_hinge>(n.name, c.input(n, 0), c.input(n, 1), c.output(k), n.attr("margin"));
}

} // namespace

std::span<const compile_rule> sparse_rules() {
  static constexpr compile_rule rules[] = {
      {"sparse_embedding", compile_lookup}, {"embedding_bag", compile_lookup},
      {"concat", compile_concat},           {"softsign", compile_softsign},
      {"cosine", compile_cosine},           {"softmax_cross_entropy_auc", compile_auc},
      {"pairwise_hinge", compile_hinge},
  };
  return rules;
}

} // namespace onednn

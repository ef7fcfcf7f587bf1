// SPDX-License-Identifier: Apache-2.0
//
// The ops of regatta/layers_sparse.hpp.
#include "compiler.hpp"
#include "sparse.hpp"
#include "vectors.hpp"

#include <cmath>

namespace onednn {
namespace {

void compile_lookup(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  const std::vector<std::size_t> ids = c.source(n, 0).shape;
  n.expect(ids.size() == 1 && n.shape.size() == 1, "takes and makes one dimension");
  weight* table = c.table(n, 0);
  const std::size_t dim = table->row();
  const bool sum = n.op == "embedding_bag";
  n.expect(n.shape[0] == (sum ? dim : ids[0] * dim), "its output has not the size that ids and table give");
  const double padding = n.attr("padding");
  n.expect(padding == std::floor(padding) && padding >= -1 && padding < static_cast<double>(table->info.shape[0]),
           "the id for padding is no row of the table");
  value* in = c.indices(n, 0, ids[0]);
  c.output(k) = c.make_value(n.name, n.shape);
  c.emit<embedding>(n.name, in, c.output(k), table, static_cast<std::int64_t>(padding), sum, c.dev());
}

void compile_concat(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  n.expect(!n.inputs.empty(), "has too few inputs");
  std::vector<value*> parts;
  std::size_t length = 0;
  for (std::size_t i = 0; i < n.inputs.size(); ++i) {
    n.expect(c.source(n, i).shape.size() == 1, "joins vectors only");
    parts.push_back(c.input(n, i));
    length += c.source(n, i).shape[0];
  }
  n.expect(n.shape == std::vector<std::size_t>{length}, "its output has not the length of its inputs");
  c.output(k) = c.make_value(n.name, n.shape);
  c.emit<concatenation>(n.name, parts, c.output(k), c.dev());
}

void compile_softsign(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  value* in = c.blocked(n, 0);
  n.expect(n.shape == c.source(n, 0).shape, "its output has not the shape of its input");
  c.output(k) = c.make_value(n.name, n.shape);
  c.emit<softsign>(n.name, in, c.output(k), c.dev());
}

void compile_cosine(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  value *a = c.blocked(n, 0), *b = c.blocked(n, 1);
  n.expect(c.source(n, 0).shape.size() == 1 && c.source(n, 0).shape == c.source(n, 1).shape,
           "takes two vectors of one length");
  n.expect(n.elements() == 1, "makes one number");
  c.output(k) = c.make_value(n.name, {1});
  c.emit<cosine>(n.name, a, b, c.output(k), c.dev());
}

void compile_auc(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  n.expect(c.source(n, 0).shape == std::vector<std::size_t>{2}, "the area under the curve is of two classes");
  const std::size_t buckets = n.count("buckets");
  n.expect(buckets >= 2 && buckets <= 1'000'000, "needs 2 to 1000000 buckets");
  value *logits = c.input(n, 0), *label = c.indices(n, 1, 1);
  c.output(k) = c.make_value(n.name, {1});
  c.emit<auc_cross_entropy>(n.name, logits, label, c.output(k), buckets);
}

void compile_hinge(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  for (std::size_t i = 0; i < 2; ++i) n.expect(c.source(n, i).elements() == 1, "compares two numbers");
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

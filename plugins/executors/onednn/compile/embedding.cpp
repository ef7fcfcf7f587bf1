// SPDX-License-Identifier: Apache-2.0
#include "ops/embedding.hpp"
#include "compile/compiler.hpp"

namespace onednn {

void compile_embedding(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  executors::expect_embedding(c, n);
  value* indices = c.indices(n, 0, n.shape[0]);
  weight* table = c.matrix(n, 0, n.shape[1]);
  weight* positions = n.weights.size() > 1 ? c.matrix(n, 1, n.shape[1]) : nullptr;
  n.expect(!positions || positions->elements >= n.elements(), "has too few rows for its positions");
  c.output(k) = c.make_value(n.name, n.shape, true);
  c.emit<token_embedding>(n.name, indices, c.output(k), table, positions, n.attr("scale"), n.attr("sinusoids") != 0,
                          c.dev());
}

void compile_lookup(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  weight* table = c.table(n, 0);
  const executors::lookup_shape s = executors::read_lookup(c, n, *table);
  value* in = c.indices(n, 0, s.ids);
  c.output(k) = c.make_value(n.name, n.shape);
  c.emit<embedding>(n.name, in, c.output(k), table, s.padding, s.sum, c.dev());
}

} // namespace onednn

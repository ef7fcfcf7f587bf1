// SPDX-License-Identifier: Apache-2.0
#include "ops/embedding.hpp"
#include "compile/compiler.hpp"

namespace cudnn {

void compile_embedding(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  executors::expect_embedding(c, n);
  value* indices = c.indices(n, 0, n.shape[0]);
  weight* table = c.matrix(n, 0, n.shape[1]);
  weight* position_table = n.weights.size() > 1 ? c.matrix(n, 1, n.shape[1]) : nullptr;
  n.expect(!position_table || position_table->elements >= n.elements(), "has too few rows for its positions");
  c.emit<token_embedding>(n.name, indices, c.make_output(k), table, position_table, n.attr("scale"),
                          n.attr("sinusoids") != 0);
}

void compile_lookup(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  weight* table = c.table(n, 0);
  const executors::lookup_shape s = executors::read_lookup(c, n, *table);
  c.emit<lookup>(n.name, c.indices(n, 0, s.ids), c.make_output(k), table, s.padding, s.sum);
}

} // namespace cudnn

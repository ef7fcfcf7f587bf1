// SPDX-License-Identifier: Apache-2.0
#include "ops/attention.hpp"
#include "compile/compiler.hpp"

namespace onednn {

void compile_attention(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  const bool half = c.dev().half;
  value *query = c.sequence(n, 0, half), *key = c.sequence(n, 1, half), *values = c.sequence(n, 2, half);
  value* indices = c.indices(n, 3, key->positions());
  const executors::attention_shape s = executors::read_attention(c, n);
  c.output(k) = c.make_value(n.name, n.shape, true);
  c.output(k)->half = half;
  c.emit<attention>(n.name, query, key, values, indices, c.output(k), s, c.dev());
}

} // namespace onednn

// SPDX-License-Identifier: Apache-2.0
#include "ops/attention.hpp"
#include "compile/compiler.hpp"

namespace cudnn {

void compile_attention(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  value *query = sequence_input(c, n, 0), *key = sequence_input(c, n, 1), *values = sequence_input(c, n, 2);
  value* indices = c.indices(n, 3, positions(*key));
  c.emit<attention>(n.name, query, key, values, indices, c.make_output(k), executors::read_attention(c, n));
}

} // namespace cudnn

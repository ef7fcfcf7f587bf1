// SPDX-License-Identifier: Apache-2.0
#include "ops/pooling.hpp"
#include "compile/compiler.hpp"

namespace onednn {

void compile_pooling(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  const pool_shape s{executors::read_window(c, n), n.op == "avg_pool"};
  n.expect(n.shape[0] == c.source(n, 0).shape[0], "must have as many output channels as input channels");
  value* in = c.either(n, 0);
  c.emit<pooling>(n.name, in, c.make_output(k, in->half), s, c.dev());
}

void compile_max_pool(compiler& c, std::size_t k) {
  return fusible_pool(c, c.at(k)) ? compile_batch_norm(c, k) : compile_pooling(c, k);
}

void compile_global_average(compiler& c, std::size_t k) {
  const node &n = c.at(k), &first = c.source(n, 0);
  value* in = c.blocked(n, 0);
  n.expect(first.shape.size() == 3 && n.shape == std::vector<std::size_t>{first.shape[0]}, "averages channels");
  c.emit<global_average>(n.name, in, c.make_output(k, false), c.dev());
}

} // namespace onednn

// SPDX-License-Identifier: Apache-2.0
#include "ops/dropout.hpp"
#include "compile/compiler.hpp"

namespace cudnn {

void compile_dropout(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  executors::expect_same_shape(c, n);
  const auto [p, layer] = executors::read_dropout(n);
  value *in = c.input(n, 0), *out = c.make_output(k);
  if (p == 0) { // the identity, in training, too
    out->alias = in;
    out->needs_gradient = in->needs_gradient;
    return;
  }
  c.emit<dropout>(n.name, in, out, p, layer);
}

} // namespace cudnn

// SPDX-License-Identifier: Apache-2.0
#include "ops/cosine.hpp"
#include "compile/compiler.hpp"

namespace onednn {

void compile_cosine(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  executors::expect_cosine(c, n);
  value *a = c.blocked(n, 0), *b = c.blocked(n, 1);
  c.output(k) = c.make_value(n.name, {1});
  c.emit<cosine>(n.name, a, b, c.output(k), c.dev());
}

} // namespace onednn

// SPDX-License-Identifier: Apache-2.0
#include "ops/cosine.hpp"
#include "compile/compiler.hpp"

namespace cudnn {

void compile_cosine(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  executors::expect_cosine(c, n);
  value *a = c.input(n, 0), *b = c.input(n, 1);
  c.emit<cosine>(n.name, std::vector{a, b}, c.make_output(k));
}

} // namespace cudnn

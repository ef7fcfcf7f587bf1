// SPDX-License-Identifier: Apache-2.0
#include "ops/squeeze_excite.hpp"
#include "compile/compiler.hpp"

namespace cudnn {

void compile_channel_scale(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  executors::expect_same_shape(c, n);
  value *in = c.input(n, 0), *factors = c.input(n, 1);
  n.expect(in->shape.size() == 3 && factors->elements() == in->shape[0], "needs one factor per channel");
  c.emit<channel_scale>(n.name, std::vector{in, factors}, c.make_output(k));
}

} // namespace cudnn

// SPDX-License-Identifier: Apache-2.0
#include "ops/squeeze_excite.hpp"
#include "compile/compiler.hpp"

namespace onednn {

void compile_channel_scale(compiler& c, std::size_t k) {
  const node &n = c.at(k), &first = c.source(n, 0);
  value *in = c.blocked(n, 0), *factors = c.blocked(n, 1);
  n.expect(n.shape == first.shape && n.shape.size() == 3 &&
               c.source(n, 1).shape == std::vector<std::size_t>{n.shape[0]},
           "needs an image and one factor per channel");
  c.emit<channel_scale>(n.name, in, factors, c.make_output(k, false), c.dev());
}

} // namespace onednn

// SPDX-License-Identifier: Apache-2.0
#include "ops/squeeze_excite.hpp"
#include "compile/compiler.hpp"

namespace onednn {

void compile_squeeze(compiler& c, std::size_t k) {
  const node &n = c.at(k), &first = c.source(n, 0);
  value* in = c.blocked(n, 0);
  c.output(k) = c.make_value(n.name, n.shape);
  if (n.op == "global_avg_pool") {
    n.expect(first.shape.size() == 3 && n.shape == std::vector<std::size_t>{first.shape[0]}, "averages channels");
    c.emit<global_average>(n.name, in, c.output(k), c.dev());
  } else if (n.op == "sigmoid") {
    executors::expect_same_shape(c, n);
    c.emit<sigmoid>(n.name, in, c.output(k));
  } else {
    value* factors = c.blocked(n, 1);
    n.expect(n.shape == first.shape && n.shape.size() == 3 &&
                 c.source(n, 1).shape == std::vector<std::size_t>{n.shape[0]},
             "needs an image and one factor per channel");
    c.emit<channel_scale>(n.name, in, factors, c.output(k), c.dev());
  }
}

} // namespace onednn

// SPDX-License-Identifier: Apache-2.0
#include "ops/sequence.hpp"
#include "compile/compiler.hpp"

namespace onednn {

void compile_select_positions(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  value* in = c.sequence(n, 0);
  n.expect(n.shape.size() == 2 && n.shape[1] == in->features(), "its output must have the features of its input");
  value* indices = n.op == "select_positions" ? c.indices(n, 1, n.shape[0]) : nullptr;
  n.expect(indices || n.shape[0] == 1, "must have one output position");
  c.output(k) = c.make_value(n.name, n.shape, true);
  c.emit<select_positions>(n.name, in, indices, c.output(k), c.dev());
}

} // namespace onednn

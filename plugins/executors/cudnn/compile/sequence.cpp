// SPDX-License-Identifier: Apache-2.0
#include "ops/sequence.hpp"
#include "compile/compiler.hpp"

namespace cudnn {

value* sequence_input(compiler& c, const node& n, std::size_t i) {
  n.expect(c.source(n, i).shape.size() == 2, "takes a sequence: positions and features");
  return c.input(n, i);
}

void compile_select_positions(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  value* in = sequence_input(c, n, 0);
  n.expect(n.shape.size() == 2 && n.shape[1] == features(*in), "its output must have the features of its input");
  value* indices = n.op == "select_positions" ? c.indices(n, 1, n.shape[0]) : nullptr;
  n.expect(indices || n.shape[0] == 1, "must have one output position");
  c.emit<select_positions>(n.name, in, indices, c.make_output(k));
}

} // namespace cudnn

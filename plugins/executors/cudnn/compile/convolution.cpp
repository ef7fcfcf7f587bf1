// SPDX-License-Identifier: Apache-2.0
#include "ops/convolution.hpp"
#include "compile/compiler.hpp"

namespace cudnn {

// Fuses a function that is the only consumer.
void compile_convolution(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  const executors::window_shape s = executors::read_window(c, n);
  value* in = c.input(n, 0);
  weight* w = c.gemm_weight(n, 0, {n.shape[0], in->shape[0], s.kernel, s.kernel});
  weight* bias = n.weights.size() > 1 ? c.tensor(n, 1, {n.shape[0]}) : nullptr;
  const auto f = fused_function(c, k);
  c.emit<convolution>(n.name, in, c.make_output(k), s, w, bias, f);
}

} // namespace cudnn

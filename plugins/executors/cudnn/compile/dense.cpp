// SPDX-License-Identifier: Apache-2.0
#include "ops/dense.hpp"
#include "compile/compiler.hpp"

namespace cudnn {

// Fuses a function that is the only consumer.
void compile_dense(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  value* in = c.input(n, 0);
  n.expect(!in->shape.empty() && in->shape.size() <= 2 && n.shape.size() == in->shape.size(),
           "needs an input and an output of 1 or 2 dimensions");
  n.expect(in->shape.size() == 1 || in->shape[0] == n.shape[0],
           "must have as many output positions as input positions");
  weight* w = c.gemm_weight(n, 0, {n.shape.back(), in->shape.back()});
  weight* bias = n.weights.size() > 1 ? c.gemm_weight(n, 1, {n.shape.back()}) : nullptr;
  const auto f = fused_function(c, k);
  c.emit<dense>(n.name, in, c.make_output(k), w, bias, f);
}

} // namespace cudnn

// SPDX-License-Identifier: Apache-2.0
#include "ops/normalization.hpp"
#include "compile/compiler.hpp"

namespace cudnn {

// Fuses the addition of a residual whose value is computed already, and a ReLU, if nothing else reads the intermediate
// values.
void compile_batch_norm(compiler& c, std::size_t k) {
  const node n = c.at(k);
  value* in = c.input(n, 0);
  executors::expect_same_shape(c, n);
  n.expect(!in->shape.empty(), "needs channels to normalise");
  const std::vector channels = {in->shape[0]};
  const batch_norm::tensors t{c.tensor(n, 0, channels), c.tensor(n, 1, channels),
                              c.tensor(n, 2, channels, RG_TENSOR_STATE), c.tensor(n, 3, channels, RG_TENSOR_STATE)};
  value* residual = nullptr;
  bool relu = false;
  std::size_t last = k;
  if (const node* next = c.follower(last); next && next->op == "add" && next->inputs.size() == 2) {
    const std::size_t other = next->inputs[0] == last ? next->inputs[1] : next->inputs[0];
    if (other != last && c.output(other) && c.output(other)->shape == n.shape) {
      residual = c.input(*next, next->inputs[0] == last ? 1 : 0);
      last = c.at(last).consumers[0];
      c.at(last).done = true;
      c.at(last).expect(c.at(last).shape == n.shape, "adds different shapes");
    }
  }
  if (const node* next = c.follower(last); next && next->op == "relu") {
    relu = true;
    last = c.at(last).consumers[0];
    c.at(last).done = true;
    c.at(last).expect(c.at(last).shape == n.shape, "its output must have the shape of its input");
  }
  c.emit<batch_norm>(n.name, in, residual, c.make_output(last), t, n.attr("epsilon"), n.attr("momentum"), relu);
}

void compile_layer_norm(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  value* in = sequence_input(c, n, 0);
  executors::expect_same_shape(c, n);
  weight *scale = c.tensor(n, 0, {n.shape[1]}), *bias = c.tensor(n, 1, {n.shape[1]});
  c.emit<layer_norm>(n.name, in, c.make_output(k), scale, bias, n.attr("epsilon"));
}

} // namespace cudnn

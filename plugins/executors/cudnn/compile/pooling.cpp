// SPDX-License-Identifier: Apache-2.0
#include "ops/pooling.hpp"
#include "compile/compiler.hpp"

namespace cudnn {
namespace {

int side(std::size_t s) {
  return static_cast<int>(s);
}

} // namespace

void compile_pooling(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  const executors::window_shape s = executors::read_window(c, n);
  value* in = c.input(n, 0);
  n.expect(n.shape[0] == in->shape[0], "must have as many output channels as input channels");
  const window w{.height = side(in->shape[1]),
                 .width = side(in->shape[2]),
                 .out_height = side(n.shape[1]),
                 .out_width = side(n.shape[2]),
                 .kernel_height = side(s.kernel),
                 .kernel_width = side(s.kernel),
                 .stride = side(s.stride),
                 .padding = side(s.padding)};
  c.emit<pooling>(n.name, in, c.make_output(k), w, n.op == "avg_pool");
}

void compile_global_average(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  value* in = c.input(n, 0);
  n.expect(in->shape.size() == 3 && n.shape == std::vector{in->shape[0]}, "averages channels");
  const int height = side(in->shape[1]), width = side(in->shape[2]);
  const window all{.height = height, .width = width, .kernel_height = height, .kernel_width = width};
  c.emit<pooling>(n.name, in, c.make_output(k), all, true);
}

} // namespace cudnn

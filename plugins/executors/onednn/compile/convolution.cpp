// SPDX-License-Identifier: Apache-2.0
#include "ops/convolution.hpp"
#include "compile/compiler.hpp"

namespace onednn {

void compile_convolution(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  const executors::window_shape over = executors::read_window(c, n);
  value* in = c.stored(n, 0);
  // oneDNN is fast on row-major inputs with few channels only; inputs with more are converted to blocks.
  const bool half = c.dev().half;
  if (!in->plain || in->channels() >= c.lanes()) in = c.as_type(c.either(n, 0), half);
  convolution_shape s{.channels = in->channels(),
                      .height = in->height(),
                      .width = in->width(),
                      .outputs = n.shape[0],
                      .out_height = n.shape[1],
                      .out_width = n.shape[2],
                      .kernel = over.kernel,
                      .stride = over.stride,
                      .padding = over.padding,
                      .plain_input = in->plain};
  weight* w = c.tensor(n, 0, {s.outputs, s.channels, s.kernel, s.kernel});
  if (w->layout == w->canonical && !c.dev().row_major) w->layout = convolution_weight_layout(c.dev(), s);
  weight* bias = c.bias_of(k, s.outputs);
  c.emit<convolution>(n.name, in, c.make_output(k, half), s, w, bias, c.dev());
}

} // namespace onednn

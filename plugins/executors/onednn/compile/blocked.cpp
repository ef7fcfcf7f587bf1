// SPDX-License-Identifier: Apache-2.0
//
// Compile functions of ops on images and vectors of features, whose channels are stored in blocks.
#include "compile/compiler.hpp"
#include "ops/convolution.hpp"
#include "ops/layers.hpp"
#include "ops/normalization.hpp"
#include "ops/squeeze_excite.hpp"

#include <tuple>

namespace onednn {
namespace {

void compile_convolution(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  const executors::window_shape over = executors::read_window(c, n);
  value* in = c.stored(n, 0);
  // oneDNN is fast on row-major inputs with few channels only; inputs with more are converted to blocks.
  const bool half = c.dev().half;
  if (!in->plain || in->channels >= c.lanes()) in = c.as_type(c.either(n, 0), half);
  conv_shape s{.channels = in->channels,
               .height = in->height,
               .width = in->width,
               .outputs = n.shape[0],
               .out_height = n.shape[1],
               .out_width = n.shape[2],
               .kernel = over.kernel,
               .stride = over.stride,
               .padding = over.padding,
               .plain_input = in->plain};
  weight* w = c.tensor(n, 0, {s.outputs, s.channels, s.kernel, s.kernel});
  if (w->layout == w->canonical) w->layout = conv_weight_layout(c.dev(), s);
  weight* bias = c.bias_of(k, s.outputs);
  c.emit<convolution>(n.name, in, c.make_output(k, half), s, w, bias, c.dev());
}

void compile_flatten(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  value* in = c.input(n, 0);
  n.expect(n.shape.size() == 1 && n.shape[0] == in->elements(), "must make one dimension of all");
  if (!in->plain && in->spatial() == 1) {
    c.output(k) = in; // one position: blocks are already rows of channels
  } else if (in->input >= 0 && in->elements() % c.lanes() == 0) {
    c.output(k) = c.make_value(n.name, n.shape); // reads the batch's rows in place
    c.output(k)->input = in->input;
  } else {
    c.output(k) = c.make_value(n.name, n.shape);
    c.emit<relayout>(n.name, in, c.output(k), in->plain, c.dev());
  }
}

void compile_add(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  value* a = c.either(n, 0);
  value* b = c.as_type(c.either(n, 1), a->half);
  n.expect(n.shape == c.source(n, 0).shape && n.shape == c.source(n, 1).shape, "adds different shapes");
  c.emit<addition>(n.name, a, b, c.make_output(k, a->half), c.dev());
}

void compile_pooling(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  const pool_shape s{executors::read_window(c, n), n.op == "avg_pool"};
  n.expect(n.shape[0] == c.source(n, 0).shape[0], "makes as many channels as it takes");
  value* in = c.either(n, 0);
  c.emit<pooling>(n.name, in, c.make_output(k, in->half), s, c.dev());
}

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
             "takes a map and one factor a channel");
    c.emit<channel_scale>(n.name, in, factors, c.output(k), c.dev());
  }
}

bool fusible_pool(const compiler& c, const node& n) {
  const node& in = c.source(n, 0);
  return in.shape.size() == 3 && n.count("kernel") == 2 && n.count("stride") == 2 && n.count("padding") == 0 &&
         in.shape[1] % 2 == 0 && in.shape[2] % 2 == 0;
}

// Fuses node k into an activation as its next stage.
void take(compiler& c, std::size_t k, stages& s) {
  node& n = c.at(k);
  n.done = true;
  const node& in = c.source(n, 0);
  if (n.op == "max_pool") {
    s.pool = true;
    n.expect(n.shape == std::vector<std::size_t>{in.shape[0], in.shape[1] / 2, in.shape[2] / 2},
             "its output has not half the size of its input");
    return;
  }
  executors::expect_same_shape(c, n);
  if (n.op == "relu") {
    s.relu = true;
  } else if (n.op == "dropout") {
    std::tie(s.dropout, s.layer) = executors::read_dropout(n);
  } else {
    n.expect(!n.shape.empty(), "needs channels");
    s.norm = true;
    s.epsilon = n.attr("epsilon");
    s.momentum = n.attr("momentum");
    const std::vector<std::size_t> channels = {n.shape[0]};
    s.scale = c.tensor(n, 0, channels);
    s.bias = c.tensor(n, 1, channels);
    s.mean = c.tensor(n, 2, channels, RG_TENSOR_STATE);
    s.variance = c.tensor(n, 3, channels, RG_TENSOR_STATE);
    s.folded = c.folded(k);
  }
}

// If the only consumer of batch norm `last` is an addition, and the addition's other input is already computed, returns
// that input; else null.
value* residual_of(compiler& c, std::size_t last) {
  const node* next = c.follower(last);
  if (!next || next->done || next->op != "add" || c.at(last).shape.size() != 3) return nullptr;
  const std::size_t other = next->inputs[next->inputs[0] == last ? 1 : 0];
  return other < last && c.at(other).shape == next->shape && c.output(other) && !c.output(other)->plain
             ? c.output(other)
             : nullptr;
}

// Compiles node k and fuses the nodes after it, as long as each is of a later stage and is the only consumer of the
// value before it.
void compile_activation(compiler& c, std::size_t k) {
  const node first = c.at(k);
  value *in = c.either(first, 0), *residual = nullptr;
  stages s;
  auto rank = [&](const node& n) {
    if (n.op == "batch_norm") return 1;
    if (n.op == "relu") return 3;
    return n.op == "dropout" || (n.op == "max_pool" && !residual && fusible_pool(c, n)) ? 4 : 0;
  };
  std::size_t last = k;
  take(c, k, s);
  if (s.norm) residual = residual_of(c, last);
  if (residual) {
    residual = c.as_type(residual, in->half);
    last = c.at(last).consumers[0];
    c.at(last).done = true;
  }
  int reached = residual ? 2 : rank(c.at(last));
  while (reached < 4) {
    const node* next = c.follower(last);
    if (!next || next->done || rank(*next) <= reached) break;
    last = c.at(last).consumers[0];
    take(c, last, s);
    reached = rank(c.at(last));
  }
  value* out = c.make_value(first.name, c.at(last).shape);
  out->half = in->half;
  c.output(last) = out;
  if (in->half)
    c.emit<activation<bf16>>(first.name, in, residual, out, s, c.dev());
  else
    c.emit<activation<float>>(first.name, in, residual, out, s, c.dev());
}

void compile_max_pool(compiler& c, std::size_t k) {
  return fusible_pool(c, c.at(k)) ? compile_activation(c, k) : compile_pooling(c, k);
}

} // namespace

std::span<const compile_rule> blocked_rules() {
  static constexpr compile_rule rules[] = {
      {"conv2d", compile_convolution},
      {"batch_norm", compile_activation},
      {"relu", compile_activation},
      {"dropout", compile_activation},
      {"max_pool", compile_max_pool},
      {"avg_pool", compile_pooling},
      {"add", compile_add},
      {"flatten", compile_flatten},
      {"global_avg_pool", compile_squeeze},
      {"sigmoid", compile_squeeze},
      {"scale_channels", compile_squeeze},
  };
  return rules;
}

} // namespace onednn

// SPDX-License-Identifier: Apache-2.0
//
// Images, feature vectors, and elementwise ops.
#include "compile/compiler.hpp"
#include "ops/convolution.hpp"
#include "ops/dense.hpp"
#include "ops/elementwise.hpp"
#include "ops/normalization.hpp"

#include <optional>

namespace cudnn {
namespace {

std::optional<function> function_named(std::string_view op) {
  if (op == "relu") return function::relu;
  if (op == "gelu") return function::gelu;
  if (op == "tanh") return function::tanh;
  if (op == "sigmoid") return function::sigmoid;
  if (op == "softsign") return function::softsign;
  return std::nullopt;
}

// Returns the elementwise function that is the only consumer of node k, and sets k to its node; none if the consumer is
// something else.
std::optional<function> take_function(compiler& c, std::size_t& k) {
  const node* next = c.follower(k);
  const auto f = next ? function_named(next->op) : std::nullopt;
  if (!f) return f;
  const std::vector<std::size_t>& shape = c.at(k).shape;
  k = c.at(k).consumers[0];
  c.at(k).done = true;
  c.at(k).expect(c.at(k).shape == shape, "its output has not the shape of its input");
  return f;
}

// Fuses a function that is the only consumer.
void compile_convolution(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  const executors::window_shape s = executors::read_window(c, n);
  value* in = c.input(n, 0);
  weight* w = c.multiplied(n, 0, {n.shape[0], in->shape[0], s.kernel, s.kernel});
  weight* bias = n.weights.size() > 1 ? c.tensor(n, 1, {n.shape[0]}) : nullptr;
  const auto f = take_function(c, k);
  c.emit<convolution>(n.name, in, c.make_output(k), s, w, bias, f);
}

// Fuses a function that is the only consumer, as convolutions do.
void compile_dense(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  value* in = c.input(n, 0);
  n.expect(!in->shape.empty() && in->shape.size() <= 2 && n.shape.size() == in->shape.size(),
           "takes and makes 1 or 2 dimensions");
  n.expect(in->shape.size() == 1 || in->shape[0] == n.shape[0], "makes as many places as it takes");
  weight* w = c.multiplied(n, 0, {n.shape.back(), in->shape.back()});
  weight* bias = n.weights.size() > 1 ? c.multiplied(n, 1, {n.shape.back()}) : nullptr;
  auto* const below = c.source(n, 0).consumers.size() == 1 ? dynamic_cast<dense*>(in->maker) : nullptr;
  const auto f = take_function(c, k);
  c.emit<dense>(n.name, in, c.make_output(k), w, bias, f, below);
}

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
    c.at(last).expect(c.at(last).shape == n.shape, "its output has not the shape of its input");
  }
  c.emit<batch_norm>(n.name, in, residual, c.make_output(last), t, n.attr("epsilon"), n.attr("momentum"), relu);
}

void compile_map(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  executors::expect_same_shape(c, n);
  value* in = c.input(n, 0);
  c.emit<map>(n.name, in, c.make_output(k), *function_named(n.op));
}

void compile_dropout(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  executors::expect_same_shape(c, n);
  const auto [p, layer] = executors::read_dropout(n);
  value* in = c.input(n, 0);
  c.emit<dropout>(n.name, in, c.make_output(k), p, layer);
}

int side(std::size_t s) {
  return static_cast<int>(s);
}

void compile_pooling(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  const executors::window_shape s = executors::read_window(c, n);
  value* in = c.input(n, 0);
  n.expect(n.shape[0] == in->shape[0], "makes as many channels as it takes");
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

void compile_channel_scale(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  executors::expect_same_shape(c, n);
  value *in = c.input(n, 0), *factors = c.input(n, 1);
  n.expect(in->shape.size() == 3 && factors->elements() == in->shape[0], "takes one factor a channel");
  c.emit<channel_scale>(n.name, std::vector{in, factors}, c.make_output(k));
}

void compile_addition(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  n.expect(n.shape == c.source(n, 0).shape && n.shape == c.source(n, 1).shape, "adds different shapes");
  value *a = c.input(n, 0), *b = c.input(n, 1);
  c.emit<addition>(n.name, std::vector{a, b}, c.make_output(k));
}

// An alias of the same memory, unless channels-last elements must be reordered.
void compile_flatten(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  value* in = c.input(n, 0);
  n.expect(n.shape == std::vector{in->elements()}, "must make one dimension of all");
  value* out = c.make_output(k);
  if (in->lies.last && in->lies.spatial > 1 && in->lies.channels > 1) {
    c.emit<relayout>(n.name, std::vector{in}, out);
    return;
  }
  out->alias = in;
  out->needs_gradient = in->needs_gradient;
}

void compile_concatenation(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  executors::expect_concatenation(c, n);
  std::vector<value*> parts;
  for (std::size_t i = 0; i < n.inputs.size(); ++i) parts.push_back(c.input(n, i));
  c.emit<concatenation>(n.name, parts, c.make_output(k));
}

void compile_cosine(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  executors::expect_cosine(c, n);
  value *a = c.input(n, 0), *b = c.input(n, 1);
  c.emit<cosine>(n.name, std::vector{a, b}, c.make_output(k));
}

constexpr compile_rule rules[] = {
    {"conv2d", compile_convolution},
    {"dense", compile_dense},
    {"batch_norm", compile_batch_norm},
    {"relu", compile_map},
    {"gelu", compile_map},
    {"tanh", compile_map},
    {"sigmoid", compile_map},
    {"softsign", compile_map},
    {"dropout", compile_dropout},
    {"max_pool", compile_pooling},
    {"avg_pool", compile_pooling},
    {"global_avg_pool", compile_global_average},
    {"scale_channels", compile_channel_scale},
    {"add", compile_addition},
    {"flatten", compile_flatten},
    {"concat", compile_concatenation},
    {"cosine", compile_cosine},
};

} // namespace

std::span<const compile_rule> layer_rules() {
  return rules;
}

} // namespace cudnn

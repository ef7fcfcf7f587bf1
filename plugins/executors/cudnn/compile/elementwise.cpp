// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise.hpp"
#include "compile/compiler.hpp"

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

} // namespace

std::optional<function> fused_function(compiler& c, std::size_t& k) {
  const node* next = c.follower(k);
  const auto f = next ? function_named(next->op) : std::nullopt;
  if (!f) return f;
  const std::vector<std::size_t>& shape = c.at(k).shape;
  k = c.at(k).consumers[0];
  c.at(k).done = true;
  c.at(k).expect(c.at(k).shape == shape, "its output must have the shape of its input");
  return f;
}

void compile_map(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  executors::expect_same_shape(c, n);
  value* in = c.input(n, 0);
  c.emit<map>(n.name, in, c.make_output(k), *function_named(n.op));
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
  n.expect(n.shape == std::vector{in->elements()}, "its output must be one dimension of all elements");
  value* out = c.make_output(k);
  if (in->layout.channels_last && in->layout.spatial > 1 && in->layout.channels > 1) {
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

} // namespace cudnn

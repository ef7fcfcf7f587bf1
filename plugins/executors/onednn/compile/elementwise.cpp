// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise.hpp"
#include "compile/compiler.hpp"

namespace onednn {

elementwise_function function_named(std::string_view op) {
  if (op == "relu") return elementwise_function::relu;
  if (op == "gelu") return elementwise_function::gelu;
  if (op == "tanh") return elementwise_function::tanh;
  return elementwise_function::none;
}

void compile_elementwise(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  value* in = c.sequence(n, 0);
  executors::expect_same_shape(c, n);
  c.output(k) = c.make_value(n.name, n.shape, true);
  c.emit<elementwise>(n.name, in, c.output(k), function_named(n.op), c.dev());
}

void compile_add(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  value* a = c.either(n, 0);
  value* b = c.as_type(c.either(n, 1), a->half);
  n.expect(n.shape == c.source(n, 0).shape && n.shape == c.source(n, 1).shape, "adds different shapes");
  c.emit<addition>(n.name, a, b, c.make_output(k, a->half), c.dev());
}

void compile_flatten(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  value* in = c.input(n, 0);
  n.expect(n.shape.size() == 1 && n.shape[0] == in->elements(), "its output must be one dimension of all elements");
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

void compile_concat(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  executors::expect_concatenation(c, n);
  std::vector<value*> parts;
  for (std::size_t i = 0; i < n.inputs.size(); ++i) parts.push_back(c.input(n, i));
  c.output(k) = c.make_value(n.name, n.shape);
  c.emit<concatenation>(n.name, parts, c.output(k), c.dev());
}

void compile_sigmoid(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  value* in = c.blocked(n, 0);
  executors::expect_same_shape(c, n);
  c.emit<sigmoid>(n.name, in, c.make_output(k, false));
}

void compile_softsign(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  value* in = c.blocked(n, 0);
  executors::expect_same_shape(c, n);
  c.output(k) = c.make_value(n.name, n.shape);
  c.emit<softsign>(n.name, in, c.output(k), c.dev());
}

} // namespace onednn

// SPDX-License-Identifier: Apache-2.0
//
// The compile function of dense layers, on vectors of features and on the positions of sequences.
#include "ops/dense.hpp"
#include "compile/compiler.hpp"

#include <algorithm>

namespace onednn {
namespace {

// Returns whether all consumers of node n multiply it. Its output then needs no copy in fp32 when computing in bf16.
bool only_multiplied(compiler& c, const node& n) {
  return std::all_of(n.consumers.begin(), n.consumers.end(),
                     [&](std::size_t k) { return c.at(k).op == "attention" || c.at(k).op == "dense"; });
}

} // namespace

// If the only consumer is an elementwise function, it is fused into the epilogue.
void compile_dense(compiler& c, std::size_t k) {
  const node &n = c.at(k), &source = c.source(n, 0);
  const bool sequence = source.shape.size() == 2;
  n.expect(source.shape.size() == n.shape.size() && (sequence || n.shape.size() == 1),
           "needs an input and an output of 1 or 2 dimensions");
  n.expect(!sequence || n.shape[0] == source.shape[0], "must have as many output positions as input positions");
  value* in = c.stored(n, 0);
  if (sequence) in = c.as_type(in, c.dev().half); // dense_gemms rounds vectors
  const std::size_t outputs = n.shape.back();
  weight* w = c.tensor(n, 0, {outputs, source.shape.back()});
  weight* bias = c.bias_of(k, outputs);
  std::size_t last = k;
  elementwise_function f = elementwise_function::none;
  if (const node* next = c.follower(k)) f = function_named(next->op);
  if (f != elementwise_function::none) {
    last = n.consumers[0];
    c.at(last).expect(c.at(last).shape == n.shape, "its output must have the shape of its input");
    c.at(last).done = true;
  }
  c.output(last) = c.make_value(n.name, n.shape, sequence);
  c.output(last)->half = c.dev().half && only_multiplied(c, c.at(last));
  c.emit<dense>(n.name, in, c.output(last), w, bias, f, sequence ? n.shape[0] : 1, c.dev());
}

} // namespace onednn

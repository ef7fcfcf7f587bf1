// SPDX-License-Identifier: Apache-2.0
//
// Compile functions of losses. A network with several losses adds them; see common/compiler.cpp.
#include "compile/compiler.hpp"
#include "ops/layers.hpp"

namespace onednn {
namespace {

void compile_cross_entropy(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  value *logits = c.input(n, 0), *label = c.indices(n, 1, 1);
  n.expect(c.source(n, 0).shape.size() == 1, "logits have one dimension");
  c.output(k) = c.make_value(n.name, {1});
  c.emit<cross_entropy>(n.name, logits, label, c.output(k), c.dev());
}

} // namespace

std::span<const compile_rule> loss_rules() {
  static constexpr compile_rule rules[] = {
      {"softmax_cross_entropy", compile_cross_entropy},
  };
  return rules;
}

} // namespace onednn

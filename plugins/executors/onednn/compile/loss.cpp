// SPDX-License-Identifier: Apache-2.0
//
// Compile functions of losses. A network with several losses adds them; see ../common/compiler.cpp.
#include "ops/loss.hpp"
#include "compile/compiler.hpp"

namespace onednn {

void compile_cross_entropy(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  value *logits = c.input(n, 0), *label = c.indices(n, 1, 1);
  n.expect(c.source(n, 0).shape.size() == 1, "logits have one dimension");
  c.output(k) = c.make_value(n.name, {1});
  c.emit<cross_entropy>(n.name, logits, label, c.output(k), c.dev());
}

void compile_token_loss(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  value* logits = c.sequence(n, 0);
  value* labels = c.indices(n, 1, logits->positions());
  n.expect(logits->input < 0, "needs logits that a layer computes, not an input of the network");
  c.output(k) = c.make_value(n.name, {1});
  c.emit<token_cross_entropy>(n.name, logits, labels, c.output(k), executors::read_smoothing(n),
                              n.attr("accuracy") != 0, c.dev());
}

void compile_auc(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  const std::size_t buckets = executors::read_buckets(c, n);
  value *logits = c.input(n, 0), *label = c.indices(n, 1, 1);
  c.output(k) = c.make_value(n.name, {1});
  c.emit<auc_cross_entropy>(n.name, logits, label, c.output(k), buckets);
}

void compile_hinge(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  executors::expect_pair(c, n);
  c.output(k) = c.make_value(n.name, {1});
  c.emit<pairwise_hinge>(n.name, c.input(n, 0), c.input(n, 1), c.output(k), n.attr("margin"));
}

} // namespace onednn

// SPDX-License-Identifier: Apache-2.0
#include "ops/loss.hpp"
#include "compile/compiler.hpp"

namespace cudnn {

// A network with several losses sums them; see common/compiler.cpp.

void compile_cross_entropy(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  value *logits = c.input(n, 0), *label = c.indices(n, 1, 1);
  n.expect(logits->shape.size() == 1, "logits have one dimension");
  c.emit<cross_entropy>(n.name, logits, label, c.make_output(k));
}

void compile_token_loss(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  n.expect(c.source(n, 0).shape.size() == 2, "takes a sequence: positions and features");
  value* logits = c.input(n, 0);
  value* labels = c.indices(n, 1, positions(*logits));
  n.expect(logits->input < 0, "needs logits that a layer computes, not an input of the network");
  c.emit<token_cross_entropy>(n.name, logits, labels, c.make_output(k), executors::read_smoothing(n),
                              n.attr("accuracy") != 0);
}

void compile_auc(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  const std::size_t buckets = executors::read_buckets(c, n);
  value *logits = c.input(n, 0), *label = c.indices(n, 1, 1);
  c.emit<auc_cross_entropy>(n.name, logits, label, c.make_output(k), buckets);
}

void compile_hinge(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  executors::expect_pair(c, n);
  value *positive = c.input(n, 0), *negative = c.input(n, 1);
  c.emit<pairwise_hinge>(n.name, positive, negative, c.make_output(k), n.attr("margin"));
}

} // namespace cudnn

// SPDX-License-Identifier: Apache-2.0
//
// Losses. A network with several losses sums them; see common/compiler.cpp.
#include "compile/compiler.hpp"
#include "ops/loss.hpp"

namespace cudnn {
namespace {

void compile_cross_entropy(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  value *logits = c.input(n, 0), *label = c.indices(n, 1, 1);
  n.expect(logits->shape.size() == 1, "logits have one dimension");
  c.emit<cross_entropy>(n.name, logits, label, c.make_output(k));
}

void compile_token_loss(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  n.expect(c.source(n, 0).shape.size() == 2, "takes a sequence: places and features");
  value* logits = c.input(n, 0);
  value* labels = c.indices(n, 1, places(*logits));
  n.expect(logits->input < 0, "takes what a layer makes");
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

constexpr compile_rule rules[] = {
    {"softmax_cross_entropy", compile_cross_entropy},
    {"token_cross_entropy", compile_token_loss},
    {"softmax_cross_entropy_auc", compile_auc},
    {"pairwise_hinge", compile_hinge},
};

} // namespace

std::span<const compile_rule> loss_rules() {
  return rules;
}

} // namespace cudnn

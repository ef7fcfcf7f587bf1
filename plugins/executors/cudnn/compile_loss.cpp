// SPDX-License-Identifier: Apache-2.0
//
// What a network can end in: a loss, or the sum of several.
#include "compiler.hpp"
#include "loss_ops.hpp"

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
  const double smoothing = n.attr("smoothing");
  n.expect(smoothing >= 0 && smoothing < 1, "smoothing must be at least 0 and less than 1");
  c.emit<token_cross_entropy>(n.name, logits, labels, c.make_output(k), smoothing, n.attr("accuracy") != 0);
}

void compile_auc(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  n.expect(c.source(n, 0).shape == std::vector<std::size_t>{2}, "the area under the curve is of two classes");
  const std::size_t buckets = n.count("buckets");
  n.expect(buckets >= 2 && buckets <= 1'000'000, "needs 2 to 1000000 buckets");
  value *logits = c.input(n, 0), *label = c.indices(n, 1, 1);
  c.emit<auc_cross_entropy>(n.name, logits, label, c.make_output(k), buckets);
}

void compile_hinge(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  for (std::size_t i = 0; i < 2; ++i) n.expect(c.source(n, i).elements() == 1, "compares two numbers");
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

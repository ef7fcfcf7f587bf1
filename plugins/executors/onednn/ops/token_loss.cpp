// SPDX-License-Identifier: Apache-2.0
#include "ops/token_loss.hpp"

#include "ops/embedding.hpp"
#include "ops/sequence.hpp"
#include "runtime/memory_plan.hpp"

#include <algorithm>
#include <cmath>

namespace onednn {

token_cross_entropy::token_cross_entropy(std::string name, value* logits, value* labels, value* out, double smoothing,
                                         bool accuracy, const device& dev)
    : loss(std::move(name), {logits, labels}, out, executors::of_tokens(accuracy), {labels->input, labels->elements()}),
      dev_(dev), smoothing_(smoothing) {}

void token_cross_entropy::plan(memory_plan& m) {
  batch_ = m.batch();
  inputs_[0].from->kept = true;
  const std::size_t rows = batch_ * places(*inputs_[0].from);
  losses_.resize(rows);
  plain_losses_.resize(rows);
  shifts_.resize(rows);
}

// With x the logits, lse = log(sum exp(x)), e the smoothing and V the vocabulary size:
// loss = lse - (1 - e) x[label] - e / V sum x.
void token_cross_entropy::forward(run& r) {
  const value& logits = *inputs_[0].from;
  const std::size_t length = places(logits), words = features(logits);
  const std::size_t samples = r.training ? batch_ : std::min<std::size_t>(batch_, r.batch->valid);
  labels_ = checked_indices(r, *inputs_[1].from, samples, words);
  parallel(dev_, samples * length, [&](std::size_t i) {
    losses_[i] = plain_losses_[i] = 0;
    if (labels_[i] == 0) return;
    const float* x = logits.data + i * words;
    const softmax_sums sums = dev_.kernels->sequence.logits(x, words);
    const double lse = sums.most + std::log(sums.sum), label = x[labels_[i]];
    shifts_[i] = static_cast<float>(lse);
    plain_losses_[i] = lse - label;
    losses_[i] = lse - (1 - smoothing_) * label - smoothing_ / static_cast<double>(words) * sums.plain;
  });
  double sum = 0; // summed in order: the result does not depend on the number of threads
  for (std::size_t i = 0; i < samples * length; ++i) sum += losses_[i];
  if (r.training) {
    r.losses[number] = sum;
    return;
  }
  double* sums = r.sums + first_sum;
  for (std::size_t i = 0; i < samples * length; ++i) {
    if (labels_[i] == 0) continue;
    const float* x = logits.data + i * words;
    sums[0] += std::max_element(x, x + words) - x == labels_[i];
    sums[1] += 1;
    sums[3] += plain_losses_[i];
  }
  sums[2] += sum;
}

void token_cross_entropy::backward(run& r) {
  const edge& e = inputs_[0];
  if (!e.gradient) return;
  const std::size_t words = features(*e.from), rows = batch_ * places(*e.from);
  const double share = 1 / divisor(*r.batch);
  parallel(dev_, rows, [&](std::size_t i) {
    float* g = e.gradient + i * words;
    if (labels_[i] == 0) {
      std::fill_n(g, words, 0.0F);
      return;
    }
    dev_.kernels->sequence.logits_gradient(e.from->data + i * words, g, words, shifts_[i], static_cast<float>(share),
                                           static_cast<float>(smoothing_ / static_cast<double>(words)));
    g[labels_[i]] -= static_cast<float>(share * (1 - smoothing_));
  });
}

} // namespace onednn

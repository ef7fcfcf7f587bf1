// SPDX-License-Identifier: Apache-2.0
//
// The metrics and divisors of a network's losses, alike for every executor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include <regatta/model.hpp>

namespace executors {

// A metric computed from sums to which evaluations add; every loss has its own range of them. `sums` is the length of
// the range; value() gets a pointer to its start. The comments below name the sums in their order.
struct metric {
  const char* name;
  std::size_t sums;
  std::function<double(const double* sums)> value;
};
// The fraction of correct predictions; 0 if nothing was counted. Sums: correct, counted, loss.
metric top1();
// The fraction of correct predictions if `accuracy`, else the perplexity, exp(mean loss without smoothing); 0 if
// nothing was counted. Sums: correct, counted, loss, loss without smoothing.
metric of_tokens(bool accuracy);
// The probability that a positive sample is in a higher bucket than a negative one, where the same bucket counts one
// half; NaN if there is one class only. Sums: negatives by bucket, positives by bucket, samples, loss.
metric area_under_curve(std::size_t buckets);
// Each sample is a pair: the pairs in order divided by the others, of which at least 1 is assumed. Sums: in order,
// samples, loss.
metric pairs_in_order();

// Says over what a loss is a mean: over samples, or over those labels of an input of type RG_I32 that are not 0, such
// as tokens or masked words.
struct counted_labels {
  int input = -1;       // number of the batch's input; -1: samples are counted
  std::size_t each = 0; // labels per sample
};

// The part of a loss op that does not depend on the executor. compiled_graph::add() sets number, first_sum and
// count_kind.
class measured {
public:
  explicit measured(metric m, counted_labels c = {}) : measured_by(std::move(m)), counted_(c) {}

  // Returns whether the loss is a mean over labels instead of samples.
  bool counts() const { return counted_.input >= 0; }
  // Returns how many labels of the batch are not 0, or, if the loss is a mean over samples, the batch's samples.
  std::uint64_t count(const rg_batch& b) const;
  // Returns the divisor of the loss: the labels or samples that count in this step on all workers; for labels at least
  // 1. If the engine does not provide the global count of labels, the other workers' batches are assumed to have as
  // many per sample as this one.
  double divisor(const rg_batch& b) const;

  metric measured_by;
  std::size_t number = 0;    // among the network's losses
  std::size_t first_sum = 0; // its first sum among those of all metrics
  int count_kind = -1;       // index in rg_batch::global_counts; -1: a mean over samples

private:
  counted_labels counted_;
};

} // namespace executors

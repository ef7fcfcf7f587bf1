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

// A metric computed from sums that evaluations accumulate; every loss has its own range of sums.
struct metric {
  const char* name;
  std::size_t sums;
  std::function<double(const double* sums)> value;
};
metric top1();                                // sums: correct, counted, loss
metric of_tokens(bool accuracy);              // else perplexity; sums: correct, counted, loss, loss without smoothing
metric area_under_curve(std::size_t buckets); // sums: negatives by bucket, positives by bucket, samples, loss
metric pairs_in_order(); // correctly ordered pairs per incorrectly ordered one; sums: in order, samples, loss

// A loss is a mean over samples, or over those labels of an input that are not 0: tokens or masked words.
struct counted_labels {
  int input = -1;       // number of the batch's input; -1: samples are counted
  std::size_t each = 0; // labels per sample
};

// The part of a loss op that does not depend on the executor.
class measured {
public:
  explicit measured(metric m, counted_labels c = {}) : measured_by(std::move(m)), counted_(c) {}

  // Returns whether the loss is a mean over labels instead of samples.
  bool counts() const { return counted_.input >= 0; }
  // Returns how many labels or samples of the batch count.
  std::uint64_t count(const rg_batch& b) const;
  // Returns the divisor of the loss: the labels or samples that count in this step on all workers. If the engine does
  // not provide the global count, the other workers' batches are assumed to be like this one.
  double divisor(const rg_batch& b) const;

  metric measured_by;
  std::size_t number = 0;    // among the network's losses
  std::size_t first_sum = 0; // its first sum among those of all metrics
  int count_kind = -1;       // index in rg_batch::global_counts

private:
  counted_labels counted_;
};

} // namespace executors

// SPDX-License-Identifier: Apache-2.0
//
// What a network's losses are measured and divided by, whatever computes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include <regatta/model.hpp>

namespace executors {

// Evaluations add up so many sums, each metric its own, and this is what those come to.
struct metric {
  const char* name;
  std::size_t sums;
  std::function<double(const double* sums)> value;
};
metric top1();                                // of correct, counted, loss
metric of_tokens(bool accuracy);              // or perplexity; of correct, counted, loss, loss without smoothing
metric area_under_curve(std::size_t buckets); // of negatives by bucket, positives by bucket, samples, loss
metric pairs_in_order();                      // for each that is not; of in order, samples, loss

// A loss is a mean over samples, or over an input's labels that are not 0: tokens, masked words.
struct counted_labels {
  int input = -1;       // of the batch; -1: samples
  std::size_t each = 0; // labels a sample
};

// What an op is besides that is a loss of the network.
class measured {
public:
  explicit measured(metric m, counted_labels c = {}) : measured_by(std::move(m)), counted_(c) {}

  // Whether it is a mean over something else than samples, and how many a batch has.
  bool counts() const { return counted_.input >= 0; }
  std::uint64_t count(const rg_batch& b) const;
  // What the loss is divided by: all that counts in this step, of all workers. Without the engine's count we take it
  // that the other workers' batches are like ours.
  double divisor(const rg_batch& b) const;

  metric measured_by;
  std::size_t number = 0;    // among the network's losses
  std::size_t first_sum = 0; // among those of all metrics
  int count_kind = -1;       // its place in rg_batch::global_counts

private:
  counted_labels counted_;
};

} // namespace executors

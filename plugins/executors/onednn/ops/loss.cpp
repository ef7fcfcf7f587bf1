// SPDX-License-Identifier: Apache-2.0
#include "ops/loss.hpp"

#include "../common/weights.hpp"
#include "ops/embedding.hpp"
#include "runtime/memory_plan.hpp"

#include <algorithm>
#include <cmath>

namespace onednn {

cross_entropy::cross_entropy(std::string name, value* logits, value* label, value* out, const device& dev)
    : loss(std::move(name), {logits, label}, out, executors::top1()), dev_(dev) {}

void cross_entropy::plan(memory_plan& m) {
  batch_ = m.batch();
  slot_ = m.request_kept(batch_ * inputs_[0].from->channels() * sizeof(float));
  losses_.resize(batch_);
}

void cross_entropy::attach(const memory_plan& m) {
  probabilities_ = m.at_slot(slot_);
}

void cross_entropy::forward(run& r) {
  const value& logits = *inputs_[0].from;
  const std::size_t classes = logits.channels();
  const auto* labels = static_cast<const std::int32_t*>(r.batch->inputs[inputs_[1].from->input]);
  const std::size_t samples = r.training ? batch_ : std::min<std::size_t>(batch_, r.batch->valid);
  executors::check_labels(*r.batch, static_cast<std::size_t>(inputs_[1].from->input), samples, classes);

  parallel(dev_, samples, [&](std::size_t s) {
    const float* x = logits.data + s * logits.stride;
    float* p = probabilities_ + s * classes;
    const float most = *std::max_element(x, x + classes);
    double sum = 0;
    for (std::size_t c = 0; c < classes; ++c) sum += p[c] = std::exp(x[c] - most);
    const auto inverse = static_cast<float>(1 / sum);
    for (std::size_t c = 0; c < classes; ++c) p[c] *= inverse;
    losses_[s] = std::log(sum) - (x[labels[s]] - most);
  });
  double sum = 0; // summed in order: the result does not depend on the number of threads
  for (std::size_t s = 0; s < samples; ++s) sum += losses_[s];
  if (r.training) {
    r.losses[number] = sum;
    return;
  }
  double* sums = r.sums + first_sum;
  for (std::size_t s = 0; s < samples; ++s) {
    const float* x = logits.data + s * logits.stride;
    sums[0] += std::max_element(x, x + classes) - x == labels[s];
  }
  sums[1] += static_cast<double>(samples);
  sums[2] += sum;
}

void cross_entropy::backward(run& r) {
  const value& logits = *inputs_[0].from;
  if (!inputs_[0].gradient) return;
  const std::size_t classes = logits.channels();
  const auto* labels = static_cast<const std::int32_t*>(r.batch->inputs[inputs_[1].from->input]);
  const auto scale = static_cast<float>(1 / divisor(*r.batch));
  parallel(dev_, batch_, [&](std::size_t s) {
    const float* p = probabilities_ + s * classes;
    float* g = inputs_[0].gradient + s * logits.stride;
    for (std::size_t c = 0; c < classes; ++c) g[c] = p[c] * scale;
    g[labels[s]] -= scale;
    std::fill(g + classes, g + logits.stride, 0.0F);
  });
}

token_cross_entropy::token_cross_entropy(std::string name, value* logits, value* labels, value* out, double smoothing,
                                         bool accuracy, const device& dev)
    : loss(std::move(name), {logits, labels}, out, executors::of_tokens(accuracy), {labels->input, labels->elements()}),
      dev_(dev), smoothing_(smoothing) {}

void token_cross_entropy::plan(memory_plan& m) {
  batch_ = m.batch();
  inputs_[0].from->kept = true;
  const std::size_t rows = batch_ * inputs_[0].from->positions();
  losses_.resize(rows);
  plain_losses_.resize(rows);
  shifts_.resize(rows);
}

// With x the logits, lse = log(sum exp(x)), e the smoothing and V the vocabulary size:
// loss = lse - (1 - e) x[label] - e / V sum x.
void token_cross_entropy::forward(run& r) {
  const value& logits = *inputs_[0].from;
  const std::size_t length = logits.positions(), words = logits.features();
  const std::size_t samples = r.training ? batch_ : std::min<std::size_t>(batch_, r.batch->valid);
  labels_ = checked_indices(r, *inputs_[1].from, samples, words);
  parallel(dev_, samples * length, [&](std::size_t i) {
    losses_[i] = plain_losses_[i] = 0;
    if (labels_[i] == 0) return;
    const float* x = logits.data + i * words;
    const softmax_sums sums = dev_.kernels->loss.logits(x, words);
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
  const std::size_t words = e.from->features(), rows = batch_ * e.from->positions();
  const double scale = 1 / divisor(*r.batch);
  parallel(dev_, rows, [&](std::size_t i) {
    float* g = e.gradient + i * words;
    if (labels_[i] == 0) {
      std::fill_n(g, words, 0.0F);
      return;
    }
    dev_.kernels->loss.logits_gradient(e.from->data + i * words, g, words, shifts_[i], static_cast<float>(scale),
                                       static_cast<float>(smoothing_ / static_cast<double>(words)));
    g[labels_[i]] -= static_cast<float>(scale * (1 - smoothing_));
  });
}

auc_cross_entropy::auc_cross_entropy(std::string name, value* logits, value* label, value* out, std::size_t buckets)
    : loss(std::move(name), {logits, label}, out, executors::area_under_curve(buckets)), buckets_(buckets) {}

void auc_cross_entropy::plan(memory_plan& m) {
  batch_ = m.batch();
  wrong_.resize(batch_);
}

void auc_cross_entropy::forward(run& r) {
  const value& logits = *inputs_[0].from;
  const auto* labels = static_cast<const std::int32_t*>(r.batch->inputs[inputs_[1].from->input]);
  const std::size_t samples = r.training ? batch_ : std::min<std::size_t>(batch_, r.batch->valid);
  executors::check_labels(*r.batch, static_cast<std::size_t>(inputs_[1].from->input), samples, 2);
  double sum = 0, *sums = r.training ? nullptr : r.sums + first_sum;
  for (std::size_t s = 0; s < samples; ++s) {
    const std::int32_t label = labels[s];
    const float* x = logits.data + s * logits.stride;
    const double behind = static_cast<double>(x[1 - label]) - x[label]; // by how much the label's logit is smaller
    const double small = std::exp(-std::abs(behind));                   // at most 1: cannot overflow
    wrong_[s] = static_cast<float>((behind > 0 ? 1 : small) / (1 + small));
    sum += std::max(behind, 0.0) + std::log1p(small);
    if (!sums) continue;
    const double clicked = label ? 1 - wrong_[s] : wrong_[s];
    // A NaN goes to bucket 0; the loss reports it.
    const auto bucket = clicked >= 0 ? static_cast<std::size_t>(clicked * static_cast<double>(buckets_)) : 0;
    sums[static_cast<std::size_t>(label) * buckets_ + std::min(bucket, buckets_ - 1)] += 1;
  }
  if (!sums) {
    r.losses[number] = sum;
    return;
  }
  sums[2 * buckets_] += static_cast<double>(samples);
  sums[2 * buckets_ + 1] += sum;
}

void auc_cross_entropy::backward(run& r) {
  const value& logits = *inputs_[0].from;
  if (!inputs_[0].gradient) return;
  const auto* labels = static_cast<const std::int32_t*>(r.batch->inputs[inputs_[1].from->input]);
  const auto scale = static_cast<float>(1 / divisor(*r.batch));
  for (std::size_t s = 0; s < batch_; ++s) {
    float* g = inputs_[0].gradient + s * logits.stride;
    std::fill(g, g + logits.stride, 0.0F);
    g[1 - labels[s]] = wrong_[s] * scale;
    g[labels[s]] = -wrong_[s] * scale;
  }
}

void pairwise_hinge::plan(memory_plan& m) {
  batch_ = m.batch();
  for (edge& e : inputs_) e.from->kept = true;
}

float pairwise_hinge::loss_of(std::size_t sample) const {
  const value &positive = *inputs_[0].from, &negative = *inputs_[1].from;
  return margin_ - positive.data[sample * positive.stride] + negative.data[sample * negative.stride];
}

void pairwise_hinge::forward(run& r) {
  const value &positive = *inputs_[0].from, &negative = *inputs_[1].from;
  const std::size_t samples = r.training ? batch_ : std::min<std::size_t>(batch_, r.batch->valid);
  std::size_t right = 0;
  double sum = 0;
  for (std::size_t s = 0; s < samples; ++s) {
    sum += std::max(0.0F, loss_of(s));
    right += positive.data[s * positive.stride] > negative.data[s * negative.stride];
  }
  if (r.training) {
    r.losses[number] = sum;
    return;
  }
  double* sums = r.sums + first_sum;
  sums[0] += static_cast<double>(right);
  sums[1] += static_cast<double>(samples);
  sums[2] += sum;
}

void pairwise_hinge::backward(run& r) {
  const auto scale = static_cast<float>(1 / divisor(*r.batch));
  const float gradient[2] = {-scale, scale};
  for (std::size_t i = 0; i < 2; ++i) {
    const edge& e = inputs_[i];
    if (!e.gradient) continue;
    const std::size_t stride = e.from->stride;
    for (std::size_t s = 0; s < batch_; ++s) {
      std::fill_n(e.gradient + s * stride, stride, 0.0F);
      e.gradient[s * stride] = loss_of(s) > 0 ? gradient[i] : 0.0F;
    }
  }
}

} // namespace onednn

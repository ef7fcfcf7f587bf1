// SPDX-License-Identifier: Apache-2.0
#include "ops/layers.hpp"

#include "../common/weights.hpp"
#include "runtime/memory_plan.hpp"

#include <algorithm>
#include <cmath>

namespace onednn {

cross_entropy::cross_entropy(std::string name, value* logits, value* label, value* out, const device& dev)
    : loss(std::move(name), {logits, label}, out, executors::top1()), dev_(dev) {}

void cross_entropy::plan(memory_plan& m) {
  batch_ = m.batch();
  slot_ = m.ask_kept(batch_ * inputs_[0].from->channels * sizeof(float));
  losses_.resize(batch_);
}

void cross_entropy::attach(const memory_plan& m) {
  probabilities_ = m.at_slot(slot_);
}

void cross_entropy::forward(run& r) {
  const value& logits = *inputs_[0].from;
  const std::size_t classes = logits.channels;
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
  const std::size_t classes = logits.channels;
  const auto* labels = static_cast<const std::int32_t*>(r.batch->inputs[inputs_[1].from->input]);
  const auto share = static_cast<float>(1 / divisor(*r.batch));
  parallel(dev_, batch_, [&](std::size_t s) {
    const float* p = probabilities_ + s * classes;
    float* g = inputs_[0].gradient + s * logits.stride;
    for (std::size_t c = 0; c < classes; ++c) g[c] = p[c] * share;
    g[labels[s]] -= share;
    std::fill(g + classes, g + logits.stride, 0.0F);
  });
}

} // namespace onednn

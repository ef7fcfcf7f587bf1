// SPDX-License-Identifier: Apache-2.0
#include "ops/vectors.hpp"

#include "../common/weights.hpp"
#include "runtime/memory_plan.hpp"

#include <algorithm>
#include <cmath>

namespace onednn {

void concatenation::plan(memory_plan& m) {
  batch_ = m.batch();
}

void concatenation::forward(run&) {
  const value& out = *output_;
  parallel(dev_, batch_, [&](std::size_t s) {
    float* y = out.data + s * out.stride;
    for (const edge& e : inputs_) y = std::copy_n(e.from->data + s * e.from->stride, e.from->channels, y);
    std::fill(y, out.data + (s + 1) * out.stride, 0.0F);
  });
}

void concatenation::backward(run&) {
  const value& out = *output_;
  parallel(dev_, batch_, [&](std::size_t s) {
    const float* dy = out.gradient + s * out.stride;
    for (const edge& e : inputs_) {
      if (e.gradient) {
        float* dx = e.gradient + s * e.from->stride;
        std::fill(std::copy_n(dy, e.from->channels, dx), dx + e.from->stride, 0.0F);
      }
      dy += e.from->channels;
    }
  });
}

void softsign::plan(memory_plan& m) {
  batch_ = m.batch();
  inputs_[0].from->kept = true;
}

void softsign::forward(run&) {
  const value &in = *inputs_[0].from, &out = *output_;
  parallel(dev_, batch_,
           [&](std::size_t s) { dev_.rows->softsign(in.data + s * in.stride, out.data + s * out.stride, out.stride); });
}

void softsign::backward(run&) {
  if (!inputs_[0].gradient) return;
  const value &in = *inputs_[0].from, &out = *output_;
  parallel(dev_, batch_, [&](std::size_t s) {
    dev_.rows->softsign_backward(in.data + s * in.stride, out.gradient + s * out.stride,
                                 inputs_[0].gradient + s * in.stride, in.stride);
  });
}

void cosine::plan(memory_plan& m) {
  batch_ = m.batch();
  slot_ = m.ask_kept(batch_ * sizeof(sizes));
  for (edge& e : inputs_) e.from->kept = true;
}

void cosine::attach(const memory_plan& m) {
  sizes_ = m.at_slot<sizes>(slot_);
}

void cosine::forward(run&) {
  const value &a = *inputs_[0].from, &b = *inputs_[1].from, &out = *output_;
  parallel(dev_, batch_, [&](std::size_t s) {
    float products[3];
    dev_.rows->products(a.data + s * a.stride, b.data + s * b.stride, a.channels, products);
    const float lengths = std::sqrt(products[1]) * std::sqrt(products[2]);
    if (lengths < 1e-12F)
      sizes_[s] = {};
    else
      sizes_[s] = {products[0] / lengths, products[1], products[2]};
    out.data[s * out.stride] = sizes_[s].cosine;
  });
}

// With c the cosine: dc/da = b / (|a| |b|) - a c / |a|^2, and dc/db by exchanging a and b.
void cosine::backward(run&) {
  const value &a = *inputs_[0].from, &b = *inputs_[1].from, &out = *output_;
  parallel(dev_, batch_, [&](std::size_t s) {
    const sizes z = sizes_[s];
    const float* x[2] = {a.data + s * a.stride, b.data + s * b.stride};
    const float square[2] = {z.a, z.b}, dy = out.gradient[s * out.stride];
    const float across = z.b > 0 ? dy / (std::sqrt(z.a) * std::sqrt(z.b)) : 0.0F;
    for (std::size_t i = 0; i < 2; ++i)
      if (inputs_[i].gradient)
        dev_.rows->combine(across, x[1 - i], z.b > 0 ? -dy * z.cosine / square[i] : 0.0F, x[i],
                           inputs_[i].gradient + s * a.stride, a.stride);
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
  const auto share = static_cast<float>(1 / divisor(*r.batch));
  for (std::size_t s = 0; s < batch_; ++s) {
    float* g = inputs_[0].gradient + s * logits.stride;
    std::fill(g, g + logits.stride, 0.0F);
    g[1 - labels[s]] = wrong_[s] * share;
    g[labels[s]] = -wrong_[s] * share;
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
  const auto share = static_cast<float>(1 / divisor(*r.batch));
  const float slope[2] = {-share, share};
  for (std::size_t i = 0; i < 2; ++i) {
    const edge& e = inputs_[i];
    if (!e.gradient) continue;
    const std::size_t stride = e.from->stride;
    for (std::size_t s = 0; s < batch_; ++s) {
      std::fill_n(e.gradient + s * stride, stride, 0.0F);
      e.gradient[s * stride] = loss_of(s) > 0 ? slope[i] : 0.0F;
    }
  }
}

} // namespace onednn

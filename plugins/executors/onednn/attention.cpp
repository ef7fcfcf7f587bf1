// SPDX-License-Identifier: Apache-2.0
#include "attention.hpp"

#include "gemm.hpp"
#include "memory_plan.hpp"
#include "rows.hpp"

#include <algorithm>
#include <cmath>

namespace onednn {

attention::attention(std::string name, value* query, value* key, value* values, value* indices, value* out,
                     const attention_shape& s, const device& dev)
    : op(std::move(name), {query, key, values, indices}, out), dev_(dev), shape_(s) {}

void attention::plan(memory_plan& m) {
  batch_ = m.batch();
  for (std::size_t i = 0; i < 3; ++i) inputs_[i].from->kept = true;
  const std::size_t elements = shape_.heads * queries() * keys();
  slot_ = m.ask_kept(batch_ * elements * sizeof(float));
  if (shape_.dropout <= 0) return;
  mask_stride_ = mask_bytes(elements);
  mask_slot_ = m.ask_kept(batch_ * mask_stride_);
}

void attention::attach(const memory_plan& m) {
  probabilities_ = m.at_slot(slot_);
  mask_ = m.at_slot<std::uint8_t>(mask_slot_);
}

// Two matrices and a row of keys a thread.
std::size_t attention::scratch_bytes() const {
  return static_cast<std::size_t>(dev_.threads) * (2 * queries() + 1) * keys() * sizeof(float);
}

template <class F> void attention::each_head(const F& f) const {
  const std::size_t tasks = batch_ * shape_.heads, threads = static_cast<std::size_t>(dev_.threads);
  parallel(dev_, threads, [&](std::size_t t) {
    auto* scratch = reinterpret_cast<float*>(dev_.scratch) + t * (2 * queries() + 1) * keys();
    for (std::size_t i = tasks * t / threads; i < tasks * (t + 1) / threads; ++i)
      f(i / shape_.heads, i % shape_.heads, scratch);
  });
}

void attention::forward(run& r) {
  const std::size_t n = queries(), m = keys(), d = size(), width = output_->height;
  const auto* indices = static_cast<const std::int32_t*>(r.batch->inputs[inputs_[3].from->input]);
  const auto factor = static_cast<float>(1 / std::sqrt(static_cast<double>(d)));
  const sequence_kernels& kernels = dev_.kernels->sequence;
  dropped_ = r.training && shape_.dropout > 0;
  if (dropped_) {
    const dropout_draw draw(r, shape_.dropout, shape_.layer);
    parallel(dev_, batch_, [&](std::size_t s) {
      kernels.draw(mask_ + s * mask_stride_, 0, (shape_.heads * n * m + 7) / 8, draw.seed, r.batch->first_sample + s,
                   draw.threshold);
    });
  }
  each_head([&](std::size_t s, std::size_t h, float* scratch) {
    const float* q = inputs_[0].from->data + s * n * width + h * d;
    const float* k = inputs_[1].from->data + s * m * width + h * d;
    const float* v = inputs_[2].from->data + s * m * width + h * d;
    float* p = probabilities_ + (s * shape_.heads + h) * n * m;
    float *dropped = scratch, *seen = scratch + 2 * n * m;
    for (std::size_t j = 0; j < m; ++j) seen[j] = indices[s * m + j] != 0 ? 1.0F : 0.0F;
    gemm('N', 'T', n, m, d, q, width, k, width, 0, p, m);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t live = shape_.causal ? std::min(i + 1, m) : m;
      kernels.softmax(p + i * m, seen, live, factor);
      std::fill(p + i * m + live, p + (i + 1) * m, 0.0F);
    }
    if (dropped_)
      kernels.drop(mask_ + s * mask_stride_, mask_offset(h), p, dropped, n * m,
                   static_cast<float>(1 / (1 - shape_.dropout)));
    gemm('N', 'N', n, d, m, dropped_ ? dropped : p, m, v, width, 0, output_->data + s * n * width + h * d, width);
  });
}

// With a the dropped probabilities and da = dy v^T: dv = a^T dy; ds = p (da' - sum of da' p) / sqrt(d), where da' is da
// through dropout; dq = ds k, dk = ds^T q.
void attention::backward(run&) {
  const std::size_t n = queries(), m = keys(), d = size(), width = output_->height;
  const auto factor = static_cast<float>(1 / std::sqrt(static_cast<double>(d)));
  const auto scale = static_cast<float>(1 / (1 - shape_.dropout));
  const sequence_kernels& kernels = dev_.kernels->sequence;
  each_head([&](std::size_t s, std::size_t h, float* scratch) {
    const std::size_t q_at = s * n * width + h * d, k_at = s * m * width + h * d;
    const float* dy = output_->gradient + q_at;
    const float* p = probabilities_ + (s * shape_.heads + h) * n * m;
    const std::uint8_t* mask = mask_ + s * mask_stride_;
    float *dropped = scratch, *ds = scratch + n * m;
    if (inputs_[2].gradient) {
      if (dropped_) kernels.drop(mask, mask_offset(h), p, dropped, n * m, scale);
      gemm('T', 'N', m, d, n, dropped_ ? dropped : p, m, dy, width, 0, inputs_[2].gradient + k_at, width);
    }
    if (!inputs_[0].gradient && !inputs_[1].gradient) return;
    gemm('N', 'T', n, m, d, dy, width, inputs_[2].from->data + k_at, width, 0, ds, m);
    if (dropped_) kernels.drop(mask, mask_offset(h), ds, ds, n * m, scale);
    for (std::size_t i = 0; i < n; ++i) kernels.softmax_gradient(ds + i * m, p + i * m, m, factor);
    if (inputs_[0].gradient)
      gemm('N', 'N', n, d, m, ds, m, inputs_[1].from->data + k_at, width, 0, inputs_[0].gradient + q_at, width);
    if (inputs_[1].gradient)
      gemm('T', 'N', m, d, n, ds, m, inputs_[0].from->data + q_at, width, 0, inputs_[1].gradient + k_at, width);
  });
}

double attention::flops() const {
  return 3 * 4.0 * static_cast<double>(queries() * keys() * output_->height);
}

} // namespace onednn

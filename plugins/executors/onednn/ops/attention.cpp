// SPDX-License-Identifier: Apache-2.0
#include "ops/attention.hpp"

#include "ops/dropout.hpp"
#include "runtime/memory_plan.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace onednn {
namespace {

std::size_t aligned(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

} // namespace

attention::attention(std::string name, value* query, value* key, value* values, value* indices, value* out,
                     const attention_shape& s, const device& dev)
    : op(std::move(name), {query, key, values, indices}, out), dev_(dev), shape_(s) {}

void attention::prepare(const preparation&) {
  const std::size_t n = queries(), m = keys(), d = size(), width = output_->features();
  const matrix q{n, d, width}, k{m, d, width}, a{n, m, m}; // y has the layout of q, v that of k
  const bool half = dev_.half;
  const gemm_options to_floats{.half = half}, to_values{.half = half, .half_result = half};
  gemms_.resize(static_cast<std::size_t>(dev_.threads));
  for (head_gemms& p : gemms_) {
    p.scores = gemm(dev_, q, k.across(), a, to_floats);
    p.mix = gemm(dev_, a, k, q, to_values);
    p.values_gradient = gemm(dev_, a.across(), q, k, to_values);
    p.mix_gradient = gemm(dev_, q, k.across(), a, to_floats);
    p.query_gradient = gemm(dev_, a, k, q, to_values);
    p.key_gradient = gemm(dev_, a.across(), q, k, to_values);
    for (const gemm* one : {&p.scores, &p.mix, &p.values_gradient, &p.mix_gradient, &p.query_gradient, &p.key_gradient})
      gemm_scratch_bytes_ = std::max(gemm_scratch_bytes_, aligned(one->scratch_bytes()));
  }
}

void attention::plan(memory_plan& m) {
  batch_ = m.batch();
  for (std::size_t i = 0; i < 3; ++i) inputs_[i].from->kept = true;
  const std::size_t elements = shape_.heads * queries() * keys();
  slot_ = m.request_kept(batch_ * elements * sizeof(float));
  if (shape_.dropout <= 0) return;
  mask_stride_ = mask_bytes(elements);
  mask_slot_ = m.request_kept(batch_ * mask_stride_);
}

void attention::attach(const memory_plan& m) {
  probabilities_ = m.at_slot(slot_);
  mask_ = m.at_slot<std::uint8_t>(mask_slot_);
}

std::size_t attention::thread_bytes() const {
  const std::size_t matrix = queries() * keys();
  return 2 * aligned(matrix * sizeof(float)) + aligned(keys() * sizeof(float)) + aligned(matrix * sizeof(bf16)) +
         gemm_scratch_bytes_;
}

template <class F> void attention::each_head(const F& f) {
  const std::size_t tasks = batch_ * shape_.heads, threads = gemms_.size();
  const std::size_t matrix = queries() * keys();
  parallel(dev_, threads, [&](std::size_t t) {
    std::byte* at = dev_.scratch + t * thread_bytes();
    auto take = [&](std::size_t bytes) { return std::exchange(at, at + aligned(bytes)); };
    auto* first = reinterpret_cast<float*>(take(matrix * sizeof(float)));
    auto* second = reinterpret_cast<float*>(take(matrix * sizeof(float)));
    auto* seen = reinterpret_cast<float*>(take(keys() * sizeof(float)));
    auto* rounded = reinterpret_cast<bf16*>(take(matrix * sizeof(bf16)));
    const workspace w{gemms_[t], first, second, seen, rounded, at};
    for (std::size_t i = tasks * t / threads; i < tasks * (t + 1) / threads; ++i)
      f(i / shape_.heads, i % shape_.heads, w);
  });
}

const void* attention::operand(const workspace& w, const float* matrix) const {
  if (!dev_.half) return matrix;
  dev_.kernels->elementwise.narrow(w.rounded, matrix, queries() * keys());
  return w.rounded;
}

void attention::forward(run& r) {
  const std::size_t n = queries(), m = keys(), d = size(), width = output_->features();
  const auto* indices = static_cast<const std::int32_t*>(r.batch->inputs[inputs_[3].from->input]);
  const auto factor = static_cast<float>(1 / std::sqrt(static_cast<double>(d)));
  const kernel_table& kernels = *dev_.kernels;
  dropped_ = r.training && shape_.dropout > 0;
  if (dropped_) {
    const dropout_draw draw(r, shape_.dropout, shape_.layer);
    parallel(dev_, batch_, [&](std::size_t s) {
      kernels.dropout.draw(mask_ + s * mask_stride_, 0, (shape_.heads * n * m + 7) / 8, draw.seed,
                           r.batch->first_sample + s, draw.threshold);
    });
  }
  each_head([&](std::size_t s, std::size_t h, const workspace& w) {
    const std::size_t q_at = s * n * width + h * d, k_at = s * m * width + h * d;
    float* p = probabilities_ + (s * shape_.heads + h) * n * m;
    for (std::size_t j = 0; j < m; ++j) w.seen[j] = indices[s * m + j] != 0 ? 1.0F : 0.0F;
    w.multiply.scores.run(dev_, data(0, q_at), data(1, k_at), p, nullptr, w.scratch);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t live = shape_.causal ? std::min(i + 1, m) : m;
      kernels.attention.softmax(p + i * m, w.seen, live, factor);
      std::fill(p + i * m + live, p + (i + 1) * m, 0.0F);
    }
    if (dropped_)
      kernels.dropout.apply(mask_ + s * mask_stride_, mask_offset(h), p, w.first, n * m,
                            static_cast<float>(1 / (1 - shape_.dropout)));
    w.multiply.mix.run(dev_, operand(w, dropped_ ? w.first : p), data(2, k_at), output_->at(output_->data, q_at),
                       nullptr, w.scratch);
  });
}

// With p the probabilities, a the probabilities after dropout, da = dy v^T, and da' the gradient of p, which is da
// masked and scaled as in dropout: dv = a^T dy; ds = p (da' - sum(da' p)) / sqrt(d); dq = ds k; dk = ds^T q.
void attention::backward(run&) {
  const std::size_t n = queries(), m = keys(), d = size(), width = output_->features();
  const auto factor = static_cast<float>(1 / std::sqrt(static_cast<double>(d)));
  const auto scale = static_cast<float>(1 / (1 - shape_.dropout));
  const kernel_table& kernels = *dev_.kernels;
  each_head([&](std::size_t s, std::size_t h, const workspace& w) {
    const std::size_t q_at = s * n * width + h * d, k_at = s * m * width + h * d;
    const void* dy = output_->at(output_->gradient, q_at);
    const float* p = probabilities_ + (s * shape_.heads + h) * n * m;
    const std::uint8_t* mask = mask_ + s * mask_stride_;
    float *dropped = w.first, *ds = w.second;
    if (inputs_[2].gradient) {
      if (dropped_) kernels.dropout.apply(mask, mask_offset(h), p, dropped, n * m, scale);
      w.multiply.values_gradient.run(dev_, operand(w, dropped_ ? dropped : p), dy, gradient(2, k_at), nullptr,
                                     w.scratch);
    }
    if (!inputs_[0].gradient && !inputs_[1].gradient) return;
    w.multiply.mix_gradient.run(dev_, dy, data(2, k_at), ds, nullptr, w.scratch);
    if (dropped_) kernels.dropout.apply(mask, mask_offset(h), ds, ds, n * m, scale);
    for (std::size_t i = 0; i < n; ++i) kernels.attention.softmax_gradient(ds + i * m, p + i * m, m, factor);
    const void* rounded = operand(w, ds);
    if (inputs_[0].gradient)
      w.multiply.query_gradient.run(dev_, rounded, data(1, k_at), gradient(0, q_at), nullptr, w.scratch);
    if (inputs_[1].gradient)
      w.multiply.key_gradient.run(dev_, rounded, data(0, q_at), gradient(1, k_at), nullptr, w.scratch);
  });
}

void attention::report(std::string& text) const {
  text += name_ + ": " + gemms_.front().scores.runs() + '\n';
}

double attention::flops() const {
  return 3 * 4.0 * static_cast<double>(queries() * keys() * output_->features());
}

} // namespace onednn

// SPDX-License-Identifier: Apache-2.0
#include "half_dense.hpp"

#include "memory_plan.hpp"

namespace onednn {
namespace {

std::size_t round_up(std::size_t n) {
  return (n + 63) / 64 * 64;
}

} // namespace

half_dense::half_dense(std::string name, value* in, value* out, weight* w, weight* bias, const device& dev)
    : op(std::move(name), {in}, out), dev_(dev), weight_(w), bias_(bias) {
  weights_ = {w};
  if (bias) weights_.push_back(bias);
}

void half_dense::prepare(const preparation& p) {
  const value &in = *inputs_[0].from, &out = *output_;
  const std::size_t inputs = in.elements(), outputs = out.channels;
  batch_ = p.batch;
  const matrix x{batch_, inputs, in.stride}, y{batch_, outputs, out.stride}, w{outputs, inputs, inputs};
  auto transposed = [](const matrix& m) { return matrix{m.columns, m.rows, m.stride, true}; };
  forward_ = half_product(dev_, x, transposed(w), y, false, false, bias_ != nullptr);
  weights_gradient_ = half_product(dev_, transposed(y), x, w, false, true, false);
  if (in.needs_gradient) data_gradient_ = half_product(dev_, y, w, x, false, false, false);
  x_at_ = 0;
  y_at_ = x_at_ + round_up(batch_ * in.stride * sizeof(bf16));
  w_at_ = y_at_ + round_up(batch_ * out.stride * sizeof(bf16));
  product_at_ = w_at_ + round_up(outputs * inputs * sizeof(bf16));
  scratch_ = product_at_ + std::max({forward_.scratch_bytes(), weights_gradient_.scratch_bytes(),
                                     data_gradient_ ? data_gradient_.scratch_bytes() : 0});
}

void half_dense::plan(memory_plan&) {
  inputs_[0].from->kept = true;
}

const bf16* half_dense::narrow(std::size_t at, const float* from, std::size_t count) const {
  auto* to = reinterpret_cast<bf16*>(dev_.scratch + at);
  constexpr std::size_t share = 4096;
  parallel(dev_, (count + share - 1) / share, [&](std::size_t i) {
    dev_.kernels->narrow(to + i * share, from + i * share, std::min(share, count - i * share));
  });
  return to;
}

void half_dense::forward(run&) {
  const value &in = *inputs_[0].from, &out = *output_;
  const bf16* x = narrow(x_at_, in.data, batch_ * in.stride);
  const bf16* w = narrow(w_at_, weight_->data, in.elements() * out.channels);
  forward_.run(dev_, x, w, out.data, bias_ ? bias_->data : nullptr, dev_.scratch + product_at_);
  for (std::size_t s = 0; s < batch_; ++s) // rows are padded to whole vectors, which later passes read
    std::fill(out.data + s * out.stride + out.channels, out.data + (s + 1) * out.stride, 0.0F);
}

void half_dense::backward(run& r) {
  const value &in = *inputs_[0].from, &out = *output_;
  const std::size_t weights = in.elements() * out.channels;
  const bf16* x = narrow(x_at_, in.data, batch_ * in.stride);
  const bf16* y = narrow(y_at_, out.gradient, batch_ * out.stride);
  if (!adds(r, *weight_)) std::fill_n(weight_->gradient, weights, 0.0F);
  weights_gradient_.run(dev_, y, x, weight_->gradient, nullptr, dev_.scratch + product_at_);
  if (bias_) {
    if (!adds(r, *bias_)) std::fill_n(bias_->gradient, rg::storage_of(bias_->info), 0.0F);
    for (std::size_t s = 0; s < batch_; ++s)
      dev_.kernels->add(bias_->gradient, out.gradient + s * out.stride, out.channels);
  }
  if (inputs_[0].gradient)
    data_gradient_.run(dev_, y, narrow(w_at_, weight_->data, weights), inputs_[0].gradient, nullptr,
                       dev_.scratch + product_at_);
}

double half_dense::flops() const {
  return (inputs_[0].from->needs_gradient ? 6.0 : 4.0) *
         static_cast<double>(inputs_[0].from->elements() * output_->channels);
}

void half_dense::report(std::string& text) const {
  text += name_ + ": matmul " + forward_.runs() + '\n';
}

} // namespace onednn

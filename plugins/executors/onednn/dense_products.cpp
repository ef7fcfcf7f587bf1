// SPDX-License-Identifier: Apache-2.0
#include "dense_products.hpp"

#include "memory_plan.hpp"

namespace onednn {

void dense_products::prepare(const device& dev, const dense_shape& s) {
  dev_ = &dev;
  shape_ = s;
  const matrix x{s.rows, s.inputs, s.x_stride}, y{s.rows, s.outputs, s.y_stride}, w{s.outputs, s.inputs, s.inputs};
  const bool half = dev.half;
  forward_ = product(dev, x, w.across(), y, {.half = half, .half_result = s.y_half, .bias = s.bias});
  product_bytes_ = forward_.scratch_bytes();
  for (const bool adds : {false, true}) {
    weight_gradient_[adds] = product(dev, y.across(), x, w, {.half = half, .accumulate = adds});
    product_bytes_ = std::max(product_bytes_, weight_gradient_[adds].scratch_bytes());
    if (!s.data_gradient) continue;
    data_gradient_[adds] = product(dev, y, w, x, {.half = half, .half_result = s.x_half, .accumulate = adds});
    product_bytes_ = std::max(product_bytes_, data_gradient_[adds].scratch_bytes());
  }
  if (copies_y()) product_at_ = (s.rows * s.y_stride * sizeof(bf16) + 63) / 64 * 64;
}

void dense_products::plan(memory_plan& m) {
  if (copies_x()) x_slot_ = m.ask_kept(shape_.rows * shape_.x_stride * sizeof(bf16));
  if (dev_->half) w_slot_ = m.ask_kept(shape_.outputs * shape_.inputs * sizeof(bf16));
}

void dense_products::attach(const memory_plan& m) {
  x_ = m.at_slot<bf16>(x_slot_);
  w_ = m.at_slot<bf16>(w_slot_);
}

void dense_products::narrow(bf16* to, const void* from, std::size_t count) const {
  constexpr std::size_t share = 4096;
  parallel(*dev_, (count + share - 1) / share, [&](std::size_t i) {
    dev_->kernels->narrow(to + i * share, static_cast<const float*>(from) + i * share,
                          std::min(share, count - i * share));
  });
}

void dense_products::forward(const void* x, const float* w, const float* bias, void* y) {
  if (copies_x()) narrow(x_, x, shape_.rows * shape_.x_stride);
  if (dev_->half) narrow(w_, w, shape_.outputs * shape_.inputs);
  forward_.run(*dev_, copies_x() ? x_ : x, dev_->half ? static_cast<const void*>(w_) : w, y, bias,
               dev_->scratch + product_at_);
}

void dense_products::weight_gradient(const void* x, const void* dy, float* dw, bool add) {
  if (copies_y()) narrow(reinterpret_cast<bf16*>(dev_->scratch), dy, shape_.rows * shape_.y_stride);
  weight_gradient_[add].run(*dev_, copies_y() ? dev_->scratch : dy, copies_x() ? x_ : x, dw, nullptr,
                            dev_->scratch + product_at_);
}

void dense_products::data_gradient(const float* w, const void* dy, void* dx, bool add) {
  data_gradient_[add].run(*dev_, copies_y() ? dev_->scratch : dy, dev_->half ? static_cast<const void*>(w_) : w, dx,
                          nullptr, dev_->scratch + product_at_);
}

void dense_products::report(const std::string& name, std::string& text) const {
  text += name + " forward: matmul " + forward_.runs() + '\n';
  if (shape_.data_gradient) text += name + " data gradient: matmul " + data_gradient_[0].runs() + '\n';
  text += name + " weight gradient: matmul " + weight_gradient_[0].runs() + '\n';
}

} // namespace onednn

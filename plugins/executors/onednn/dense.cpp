// SPDX-License-Identifier: Apache-2.0
#include "layers.hpp"

#include "memory_plan.hpp"

#include <algorithm>

namespace onednn {

dense::dense(std::string name, value* in, value* out, weight* w, weight* bias, const device& dev)
    : op(std::move(name), {in}, out), dev_(dev), weight_(w), bias_(bias) {
  weights_ = {w};
  if (bias) weights_.push_back(bias);
}

void dense::prepare(const preparation& p) {
  const value &in = *inputs_[0].from, &out = *output_;
  batch_ = p.batch;
  products_.prepare(p, name_,
                    {.rows = batch_,
                     .inputs = in.elements(),
                     .outputs = out.channels,
                     .x_stride = in.stride,
                     .y_stride = out.stride,
                     .bias = bias_ != nullptr,
                     .data_gradient = in.needs_gradient});
}

void dense::plan(memory_plan& m) {
  if (!dev_.half) inputs_[0].from->kept = true; // else there is a copy
  products_.plan(m);
}

void dense::forward(run&) {
  const value &in = *inputs_[0].from, &out = *output_;
  products_.forward(in.data, weight_->data, bias_ ? bias_->data : nullptr, out.data);
  if (out.stride != out.channels) // rows are padded to whole vectors, which later passes read
    for (std::size_t s = 0; s < batch_; ++s)
      std::fill(out.data + s * out.stride + out.channels, out.data + (s + 1) * out.stride, 0.0F);
}

void dense::backward(run& r) {
  const value &in = *inputs_[0].from, &out = *output_;
  products_.weight_gradient(in.data, out.gradient, weight_->gradient, adds(r, *weight_));
  if (bias_) {
    if (!adds(r, *bias_)) std::fill_n(bias_->gradient, rg::storage_of(bias_->info), 0.0F);
    for (std::size_t s = 0; s < batch_; ++s)
      dev_.kernels->add(bias_->gradient, out.gradient + s * out.stride, out.channels);
  }
  if (inputs_[0].gradient) products_.data_gradient(weight_->data, out.gradient, inputs_[0].gradient, false);
}

double dense::flops() const {
  return (inputs_[0].from->needs_gradient ? 6.0 : 4.0) *
         static_cast<double>(inputs_[0].from->elements() * output_->channels);
}

} // namespace onednn

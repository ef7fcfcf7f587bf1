// SPDX-License-Identifier: Apache-2.0
#include "layers.hpp"

#include "gemm.hpp"
#include "memory_plan.hpp"

#include <algorithm>

namespace onednn {

dense::dense(std::string name, value* in, value* out, weight* w, weight* bias, const device& dev)
    : op(std::move(name), {in}, out), dev_(dev), weight_(w), bias_(bias), ones_(dev.kernels->lanes, 1.0F) {
  weights_ = {w};
  if (bias) weights_.push_back(bias);
}

void dense::plan(memory_plan& m) {
  inputs_[0].from->kept = true;
  batch_ = m.batch();
}

void dense::forward(run&) {
  const value &in = *inputs_[0].from, &out = *output_;
  const std::size_t inputs = in.elements(), outputs = out.channels, lanes = dev_.kernels->lanes;
  gemm('N', 'T', batch_, outputs, inputs, in.data, in.stride, weight_->data, inputs, 0, out.data, out.stride);
  if (out.stride != outputs) // rows are padded to whole vectors, which later passes read
    for (std::size_t s = 0; s < batch_; ++s)
      std::fill(out.data + s * out.stride + outputs, out.data + (s + 1) * out.stride, 0.0F);
  if (!bias_) return;
  parallel(dev_, out.stride / lanes, [&](std::size_t b) {
    pass p;
    p.samples = batch_;
    p.height = p.width = 1;
    p.x = p.y = out.data + b * lanes;
    p.x_stride = p.y_stride = out.stride;
    p.a = ones_.data();
    p.b = bias_->data + b * lanes; // stored with its padding
    dev_.kernels->forward[with_norm](p);
  });
}

void dense::backward(run& r) {
  const value &in = *inputs_[0].from, &out = *output_;
  const std::size_t inputs = in.elements(), outputs = out.channels;
  gemm('T', 'N', outputs, inputs, batch_, out.gradient, out.stride, in.data, in.stride, adds(r, *weight_) ? 1.0F : 0.0F,
       weight_->gradient, inputs);
  if (bias_) {
    if (!adds(r, *bias_)) std::fill_n(bias_->gradient, rg::storage_of(bias_->info), 0.0F);
    for (std::size_t s = 0; s < batch_; ++s) dev_.kernels->add(bias_->gradient, out.gradient + s * out.stride, outputs);
  }
  if (inputs_[0].gradient)
    gemm('N', 'N', batch_, inputs, outputs, out.gradient, out.stride, weight_->data, inputs, 0, inputs_[0].gradient,
         in.stride);
}

double dense::flops() const {
  return (inputs_[0].from->needs_gradient ? 6.0 : 4.0) *
         static_cast<double>(inputs_[0].from->elements() * output_->channels);
}

} // namespace onednn

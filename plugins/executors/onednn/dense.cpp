// SPDX-License-Identifier: Apache-2.0
#include "layers.hpp"

#include "gemm.hpp"
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
  const std::size_t batch = p.batch, inputs = in.elements(), outputs = out.channels;
  using matrix = float_product::matrix;
  const matrix x{batch, inputs, in.stride}, y{batch, outputs, out.stride}, w{outputs, inputs, inputs};
  const matrix y_across{outputs, batch, out.stride, true}, w_across{inputs, outputs, inputs, true};
  forward_ = float_product(dev_, x, w_across, y, false, bias_ != nullptr);
  for (const bool adds : {false, true}) backward_weight_[adds] = float_product(dev_, y_across, x, w, adds);
  if (in.needs_gradient) backward_input_ = float_product(dev_, y, w, x);
  for (const auto* f : {&forward_, &backward_weight_[0], &backward_weight_[1], &backward_input_})
    scratch_ = std::max(scratch_, f->scratch_bytes());
}

void dense::plan(memory_plan& m) {
  inputs_[0].from->kept = true;
  batch_ = m.batch();
}

void dense::forward(run&) {
  const value &in = *inputs_[0].from, &out = *output_;
  forward_.run(dev_, in.data, weight_->data, out.data, bias_ ? bias_->data : nullptr);
  if (out.stride != out.channels) // rows are padded to whole vectors, which later passes read
    for (std::size_t s = 0; s < batch_; ++s)
      std::fill(out.data + s * out.stride + out.channels, out.data + (s + 1) * out.stride, 0.0F);
}

void dense::backward(run& r) {
  const value &in = *inputs_[0].from, &out = *output_;
  backward_weight_[adds(r, *weight_)].run(dev_, out.gradient, in.data, weight_->gradient);
  if (bias_) {
    if (!adds(r, *bias_)) std::fill_n(bias_->gradient, rg::storage_of(bias_->info), 0.0F);
    for (std::size_t s = 0; s < batch_; ++s)
      dev_.kernels->add(bias_->gradient, out.gradient + s * out.stride, out.channels);
  }
  if (inputs_[0].gradient) backward_input_.run(dev_, out.gradient, weight_->data, inputs_[0].gradient);
}

void dense::report(std::string& out) const {
  out += name_ + " forward: " + forward_.runs() + "\n";
  out += name_ + " weight gradient: " + backward_weight_[0].runs() + "\n";
  if (inputs_[0].from->needs_gradient) out += name_ + " data gradient: " + backward_input_.runs() + "\n";
}

double dense::flops() const {
  return (inputs_[0].from->needs_gradient ? 6.0 : 4.0) *
         static_cast<double>(inputs_[0].from->elements() * output_->channels);
}

} // namespace onednn

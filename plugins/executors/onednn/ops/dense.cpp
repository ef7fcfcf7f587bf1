// SPDX-License-Identifier: Apache-2.0
#include "ops/dense.hpp"

#include "runtime/memory_plan.hpp"

#include <algorithm>
#include <cstring>

namespace onednn {

static constexpr std::size_t column_block = 64;

dense::dense(std::string name, value* in, value* out, weight* w, weight* bias, elementwise_function f,
             std::size_t rows_a_sample, const device& dev)
    : op(std::move(name), {in}, out), dev_(dev), weight_(w), bias_(bias), function_(f), rows_a_sample_(rows_a_sample) {
  weights_ = {w};
  if (bias) weights_.push_back(bias);
}

void dense::prepare(const preparation& p) {
  const value &in = *inputs_[0].from, &out = *output_;
  rows_ = p.batch * rows_a_sample_;
  gemms_.prepare(p, name_,
                 {.rows = rows_,
                  .inputs = inputs_a_row(),
                  .outputs = outputs_a_row(),
                  .x_stride = in.stride / rows_a_sample_,
                  .y_stride = stride(),
                  .x_half = in.half,
                  .y_half = out.half,
                  .bias = bias_ != nullptr,
                  .data_gradient = in.needs_gradient});
}

void dense::plan(memory_plan& m) {
  if (value& in = *inputs_[0].from; in.half == dev_.half) in.kept = true; // otherwise dense_gemms keeps a copy
  if (function_ == elementwise_function::gelu) slot_ = m.request_kept(rows_ * stride() * output_->element_bytes());
  if (function_ == elementwise_function::relu || function_ == elementwise_function::tanh) output_->kept_longer = true;
  gemms_.plan(m);
}

void dense::attach(const memory_plan& m) {
  before_ = slot_ == no_slot ? output_->data : m.at_slot(slot_);
  gemms_.attach(m);
}

void dense::forward(run&) {
  const value& out = *output_;
  gemms_.forward(inputs_[0].from->data, weight_->data, bias_ ? bias_->data : nullptr, before_);
  if (const std::size_t used = outputs_a_row(); used != stride()) // later passes read the padding of rows
    for (std::size_t r = 0; r < rows_; ++r)
      std::memset(out.at(before_, r * stride() + used), 0, (stride() - used) * out.element_bytes());
  if (function_ != elementwise_function::none) out.half ? map<bf16>() : map<float>();
}

template <class T> void dense::map() {
  parallel(dev_, blocks(rows_, row_block), [&](std::size_t b) {
    const std::size_t at = b * row_block * stride();
    map_pass<T> p;
    p.count = std::min(row_block, rows_ - b * row_block) * stride();
    p.x = as<T>(before_) + at;
    p.y = as<T>(output_->data) + at;
    dev_.kernels->elementwise.maps<T>().forward[static_cast<int>(function_)](p);
  });
}

void dense::backward(run& r) {
  if (bias_ && !adds(r, *bias_)) std::fill_n(bias_->gradient, rg::storage_of(bias_->info), 0.0F);
  if (bias_ || function_ != elementwise_function::none) output_->half ? map_gradient<bf16>() : map_gradient<float>();
  gemms_.weight_gradient(inputs_[0].from->data, output_->gradient, weight_->gradient, adds(r, *weight_));
  if (const edge& e = inputs_[0]; e.gradient) gemms_.data_gradient(weight_->data, output_->gradient, e.gradient, e.add);
}

// Replaces the gradient of y, which only this op reads, by the gradient of the function's argument.
template <class T> void dense::map_gradient() {
  const std::size_t out = outputs_a_row();
  parallel(dev_, blocks(out, column_block), [&](std::size_t b) {
    const std::size_t first = b * column_block;
    map_gradient_pass<T> p;
    p.rows = rows_;
    p.columns = std::min(column_block, out - first);
    p.stride = stride();
    p.x = as<T>(before_) + first;
    p.y = as<T>(output_->data) + first;
    p.dy = p.dx = as<T>(output_->gradient) + first;
    p.sums = bias_ ? bias_->gradient + first : nullptr;
    dev_.kernels->elementwise.maps<T>().gradient[static_cast<int>(function_)](p);
  });
}

double dense::flops() const {
  return (inputs_[0].from->needs_gradient ? 6.0 : 4.0) *
         static_cast<double>(rows_a_sample_ * outputs_a_row() * inputs_a_row());
}

} // namespace onednn

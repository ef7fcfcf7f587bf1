// SPDX-License-Identifier: Apache-2.0
#include "ops/dense.hpp"

#include "kernels/elementwise.hpp"

namespace cudnn {

dense::dense(std::string name, value* in, value* out, weight* w, weight* bias, std::optional<function> f)
    : op(std::move(name), {in}, out), w_(w), end_(bias, f), ins_(w->row()),
      outs_(static_cast<std::size_t>(w->info.shape[0])) {
  weights_ = {w};
  if (bias) weights_.push_back(bias);
}

void dense::prepare(device& d) {
  end_.prepare(d, outputs(), rows());
  d.scratch.reserve(outs_ * sizeof(float));
}

gemm::operands dense::forward_operands() const {
  return {.a = x(), .b = w_->gemm_operand(), .c = y(), .bias = end_.bias() ? end_.bias()->gemm_operand() : nullptr};
}
gemm::operands dense::weights_gradient(float* bias_gradient) const {
  return {.a = dy(), .b = x(), .c = w_->gradient, .sums = bias_gradient};
}
gemm::operands dense::data_gradient() const {
  return {.a = dy(), .b = w_->gemm_operand(), .c = dx()};
}

void dense::attach(device& d, kernel_choices& c) {
  const auto n = static_cast<int>(rows()), i = static_cast<int>(ins_), o = static_cast<int>(outs_);
  forward_.plan(d, c, name_ + " forward",
                {.m = n, .n = o, .k = i, .b_across = true, .a_row = i, .b_row = i, .c_row = o}, d.computes.type,
                end_.fused_epilogue(), forward_operands());
  weights_by_.plan(d, c, name_ + " weights",
                   {.m = o, .n = i, .k = n, .a_across = true, .a_row = o, .b_row = i, .c_row = i}, dtype::f32,
                   end_.bias() ? gemm_epilogue::column_sums : gemm_epilogue::none, weights_gradient(d.scratch.get()));
  if (!dx()) return;
  data_.plan(d, c, name_ + " data", {.m = n, .n = i, .k = o, .a_row = o, .b_row = i, .c_row = i}, d.computes.type,
             gemm_epilogue::none, data_gradient());
}

void dense::forward(device& d, const run&) {
  forward_.compute(d, forward_operands(), false);
  if (forward_.does() == gemm_epilogue::none) end_.forward(d, y());
}

void dense::backward(device& d, const run& r) {
  weight* const bias = end_.bias();
  const bool add_bias = bias && adds(r, *bias), sums = weights_by_.does() == gemm_epilogue::column_sums;
  end_.through_function(d, y(), output_->gradient);
  weights_by_.compute(d, weights_gradient(bias && !add_bias ? bias->gradient : d.scratch.get()), adds(r, *w_));
  if (sums && add_bias)
    kernels::copy(d.stream, dtype::f32, d.scratch.get(), bias->gradient, outs_, true); // a GEMM cannot add to sums
  else if (!sums)
    end_.sum_bias(d, output_->gradient, add_bias);
  if (dx()) data_.compute(d, data_gradient(), inputs_[0].add);
}

double dense::flops() const {
  const double in_rows = static_cast<double>(inputs_[0].from->elements()) / static_cast<double>(ins_);
  return 2 * in_rows * static_cast<double>(ins_ * outs_) * (inputs_[0].from->needs_gradient ? 3 : 2);
}

} // namespace cudnn

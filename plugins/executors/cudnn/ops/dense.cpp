// SPDX-License-Identifier: Apache-2.0
#include "ops/dense.hpp"

#include "kernels/elementwise.hpp"

namespace cudnn {

dense::dense(std::string name, value* in, value* out, weight* w, weight* bias, std::optional<function> f, dense* below)
    : op(std::move(name), {in}, out), w_(w), end_(bias, f), below_(below), ins_(w->row()),
      outs_(static_cast<std::size_t>(w->info.shape[0])) {
  weights_ = {w};
  if (bias) weights_.push_back(bias);
  if (below) below->read_by_one_ = true;
}

void dense::prepare(device& d) {
  end_.prepare(d, outputs(), rows());
  d.scratch.reserve(outs_ * sizeof(float));
}

product::operands dense::ahead() const {
  return {.a = x(),
          .b = w_->multiplied(),
          .c = y(),
          .bias = end_.bias() ? end_.bias()->multiplied() : nullptr,
          .mask = passed_.get<void>()};
}
product::operands dense::weights_slope(float* bias_slope) const {
  return {.a = dy(), .b = x(), .c = w_->gradient, .sums = bias_slope};
}
product::operands dense::data_slope() const {
  return {.a = dy(), .b = w_->multiplied(), .c = dx(), .mask = below_ ? below_->passed_.get<void>() : nullptr};
}

void dense::attach(device& d, choices& c) {
  const auto n = static_cast<int>(rows()), i = static_cast<int>(ins_), o = static_cast<int>(outs_);
  const bool masks = read_by_one_ && end_.relu();
  if (masks) passed_.reserve(mask_bytes(rows(), outs_));
  forward_.plan(d, c, name_ + " forward",
                {.m = n, .n = o, .k = i, .b_across = true, .a_row = i, .b_row = i, .c_row = o}, d.computes.type,
                end_.beside_a_product(masks), ahead());
  if (!makes_mask(forward_.does())) passed_.release();
  weights_by_.plan(d, c, name_ + " weights",
                   {.m = o, .n = i, .k = n, .a_across = true, .a_row = o, .b_row = i, .c_row = i}, number::f32,
                   end_.bias() ? beside::column_sums : beside::nothing, weights_slope(d.scratch.get()));
  if (!dx()) return;
  const bool through = below_ && below_->passed_.bytes() > 0; // below_ was attached before this layer
  data_.plan(d, c, name_ + " data", {.m = n, .n = i, .k = o, .a_row = o, .b_row = i, .c_row = i}, d.computes.type,
             through ? beside::through_relu : beside::nothing, data_slope());
  if (data_.does() == beside::through_relu) below_->slope_taken_ = true;
}

void dense::forward(device& d, const run&) {
  forward_.compute(d, ahead(), false);
  if (forward_.does() == beside::nothing) end_.forward(d, y());
}

void dense::backward(device& d, const run& r) {
  weight* const bias = end_.bias();
  const bool add_bias = bias && adds(r, *bias), sums = weights_by_.does() == beside::column_sums;
  if (!slope_taken_) end_.through_function(d, y(), output_->gradient);
  weights_by_.compute(d, weights_slope(bias && !add_bias ? bias->gradient : d.scratch.get()), adds(r, *w_));
  if (sums && add_bias)
    kernels::copy(d.stream, number::f32, d.scratch.get(), bias->gradient, outs_, true); // a GEMM cannot add to sums
  else if (!sums)
    end_.sum_bias(d, output_->gradient, add_bias);
  if (dx()) data_.compute(d, data_slope(), inputs_[0].add);
}

double dense::flops() const {
  const double in_rows = static_cast<double>(inputs_[0].from->elements()) / static_cast<double>(ins_);
  return 2 * in_rows * static_cast<double>(ins_ * outs_) * (inputs_[0].from->needs_gradient ? 3 : 2);
}

} // namespace cudnn

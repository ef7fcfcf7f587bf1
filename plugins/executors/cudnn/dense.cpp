// SPDX-License-Identifier: Apache-2.0
#include "dense.hpp"

namespace cudnn {

dense::dense(std::string name, value* in, value* out, weight* w, weight* bias, std::optional<function> f)
    : op(std::move(name), {in}, out), w_(w), end_(bias, f), ins_(w->row()),
      outs_(static_cast<std::size_t>(w->info.shape[0])) {
  weights_ = {w};
  if (bias) weights_.push_back(bias);
}

void dense::prepare(device& d) {
  end_.prepare(d, outputs(), rows());
}

void dense::forward(device& d, const run&) {
  const auto n = static_cast<int>(rows()), i = static_cast<int>(ins_), o = static_cast<int>(outs_);
  multiply(d, {.m = n, .n = o, .k = i, .b_across = true, .a_row = i, .b_row = i, .c_row = o}, x(), w_->multiplied(),
           d.computes.type, y(), false, name_.c_str());
  end_.forward(d, y());
}

void dense::backward(device& d, const run& r) {
  const auto n = static_cast<int>(rows()), i = static_cast<int>(ins_), o = static_cast<int>(outs_);
  end_.backward(d, y(), output_->gradient, end_.bias() && adds(r, *end_.bias()));
  multiply(d, {.m = o, .n = i, .k = n, .a_across = true, .a_row = o, .b_row = i, .c_row = i}, dy(), x(), number::f32,
           w_->gradient, adds(r, *w_), name_.c_str());
  if (dx())
    multiply(d, {.m = n, .n = i, .k = o, .a_row = o, .b_row = i, .c_row = i}, dy(), w_->multiplied(), d.computes.type,
             dx(), inputs_[0].add, name_.c_str());
}

double dense::flops() const {
  const double in_rows = static_cast<double>(inputs_[0].from->elements()) / static_cast<double>(ins_);
  return 2 * in_rows * static_cast<double>(ins_ * outs_) * (inputs_[0].from->needs_gradient ? 3 : 2);
}

} // namespace cudnn

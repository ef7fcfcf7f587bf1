// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise.hpp"

#include "runtime/memory_plan.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace onednn {

void elementwise::plan(memory_plan& m) {
  rows_ = m.batch() * output_->positions();
  if (function_ == elementwise_function::gelu)
    inputs_[0].from->kept = true;
  else
    output_->kept_longer = true;
}

void elementwise::forward(run&) {
  const std::size_t size = output_->features();
  parallel(dev_, blocks(rows_, row_block), [&](std::size_t b) {
    const std::size_t at = b * row_block * size;
    map_pass<float> p;
    p.count = std::min(row_block, rows_ - b * row_block) * size;
    p.x = inputs_[0].from->data + at;
    p.y = output_->data + at;
    dev_.kernels->elementwise.float_maps.forward[static_cast<int>(function_)](p);
  });
}

void elementwise::backward(run&) {
  if (!inputs_[0].gradient) return;
  const std::size_t size = output_->features();
  parallel(dev_, blocks(rows_, row_block), [&](std::size_t b) {
    const std::size_t at = b * row_block * size;
    map_gradient_pass<float> p;
    p.rows = std::min(row_block, rows_ - b * row_block);
    p.columns = p.stride = size;
    p.x = inputs_[0].from->data + at;
    p.y = output_->data + at;
    p.dy = output_->gradient + at;
    p.dx = inputs_[0].gradient + at;
    dev_.kernels->elementwise.float_maps.gradient[static_cast<int>(function_)](p);
  });
}

void addition::plan(memory_plan& m) {
  count_ = m.batch() * output_->stride;
}

void addition::forward(run&) {
  const float *a = inputs_[0].from->data, *b = inputs_[1].from->data;
  float* y = output_->data;
  if (y != a) std::memcpy(y, a, count_ * output_->element_bytes());
  if (output_->half)
    dev_.kernels->elementwise.add_halves(as<bf16>(y), as<const bf16>(b), count_);
  else
    dev_.kernels->elementwise.add(y, b, count_);
}

void addition::backward(run&) {
  for (edge& e : inputs_)
    if (e.gradient && e.gradient != output_->gradient)
      std::memcpy(e.gradient, output_->gradient, count_ * output_->element_bytes());
}

void conversion::plan(memory_plan& m) {
  batch_ = m.batch();
}

void conversion::copy(const value& from, const float* in, float* out) const {
  parallel(dev_, batch_, [&](std::size_t s) {
    const std::size_t at = s * from.stride;
    if (from.half)
      dev_.kernels->elementwise.widen(out + at, as<const bf16>(in) + at, from.stride);
    else
      dev_.kernels->elementwise.narrow(as<bf16>(out) + at, in + at, from.stride);
  });
}

void conversion::forward(run&) {
  copy(*inputs_[0].from, inputs_[0].from->data, output_->data);
}

void conversion::backward(run&) {
  if (inputs_[0].gradient) copy(*output_, output_->gradient, inputs_[0].gradient);
}

relayout::relayout(std::string name, value* in, value* out, bool to_blocked, const device& dev)
    : op(std::move(name), {in}, out), dev_(dev), to_blocked_(to_blocked) {}

void relayout::plan(memory_plan& m) {
  batch_ = m.batch();
}

namespace {

// Converts one sample between [channel][position] and [block][position][lane]; padding lanes become zero.
template <bool ToBlocked> void relay(const value& shape, std::size_t lanes, float* plain, float* blocked) {
  const std::size_t spatial = shape.spatial(), blocks = (shape.channels() + lanes - 1) / lanes;
  for (std::size_t b = 0; b < blocks; ++b)
    for (std::size_t i = 0; i < spatial; ++i)
      for (std::size_t l = 0; l < lanes; ++l) {
        float& inside = blocked[(b * spatial + i) * lanes + l];
        const std::size_t c = b * lanes + l;
        if constexpr (ToBlocked)
          inside = c < shape.channels() ? plain[c * spatial + i] : 0.0F;
        else if (c < shape.channels())
          plain[c * spatial + i] = inside;
      }
}

} // namespace

void relayout::forward(run&) {
  const value &in = *inputs_[0].from, &out = *output_;
  parallel(dev_, batch_, [&](std::size_t s) {
    float *from = in.data + s * in.stride, *to = out.data + s * out.stride;
    if (to_blocked_)
      relay<true>(out, dev_.kernels->lanes, from, to);
    else
      relay<false>(in, dev_.kernels->lanes, to, from);
    if (!to_blocked_) std::fill(to + out.elements(), to + out.stride, 0.0F);
  });
}

void relayout::backward(run&) {
  if (!inputs_[0].gradient) return;
  const value &in = *inputs_[0].from, &out = *output_;
  parallel(dev_, batch_, [&](std::size_t s) {
    float *to = inputs_[0].gradient + s * in.stride, *from = out.gradient + s * out.stride;
    if (to_blocked_)
      relay<false>(out, dev_.kernels->lanes, to, from);
    else
      relay<true>(in, dev_.kernels->lanes, from, to);
  });
}

void concatenation::plan(memory_plan& m) {
  batch_ = m.batch();
}

void concatenation::forward(run&) {
  const value& out = *output_;
  parallel(dev_, batch_, [&](std::size_t s) {
    float* y = out.data + s * out.stride;
    for (const edge& e : inputs_) y = std::copy_n(e.from->data + s * e.from->stride, e.from->channels(), y);
    std::fill(y, out.data + (s + 1) * out.stride, 0.0F);
  });
}

void concatenation::backward(run&) {
  const value& out = *output_;
  parallel(dev_, batch_, [&](std::size_t s) {
    const float* dy = out.gradient + s * out.stride;
    for (const edge& e : inputs_) {
      if (e.gradient) {
        float* dx = e.gradient + s * e.from->stride;
        std::fill(std::copy_n(dy, e.from->channels(), dx), dx + e.from->stride, 0.0F);
      }
      dy += e.from->channels();
    }
  });
}

namespace {

float logistic(float x) {
  return 1 / (1 + std::exp(-x));
}

} // namespace

void sigmoid::plan(memory_plan& m) {
  inputs_[0].from->kept = true;
  count_ = m.batch() * output_->stride;
}

void sigmoid::forward(run&) {
  const float* x = inputs_[0].from->data;
  for (std::size_t i = 0; i < count_; ++i) output_->data[i] = logistic(x[i]);
}

void sigmoid::backward(run&) {
  if (!inputs_[0].gradient) return;
  const float *x = inputs_[0].from->data, *dy = output_->gradient;
  for (std::size_t i = 0; i < count_; ++i) {
    const float y = logistic(x[i]);
    inputs_[0].gradient[i] = dy[i] * y * (1 - y);
  }
}

void softsign::plan(memory_plan& m) {
  batch_ = m.batch();
  inputs_[0].from->kept = true;
}

void softsign::forward(run&) {
  const value &in = *inputs_[0].from, &out = *output_;
  parallel(dev_, batch_, [&](std::size_t s) {
    dev_.kernels->elementwise.softsign(in.data + s * in.stride, out.data + s * out.stride, out.stride);
  });
}

void softsign::backward(run&) {
  if (!inputs_[0].gradient) return;
  const value &in = *inputs_[0].from, &out = *output_;
  parallel(dev_, batch_, [&](std::size_t s) {
    dev_.kernels->elementwise.softsign_backward(in.data + s * in.stride, out.gradient + s * out.stride,
                                                inputs_[0].gradient + s * in.stride, in.stride);
  });
}

} // namespace onednn

// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise.hpp"

#include "kernels/attention.hpp"

#include <cmath>

namespace cudnn {

void map::forward(device& d, const run&) {
  kernels::map(d.stream, d.computes.type, function_, x(), y(), all());
}

void map::backward(device& d, const run&) {
  if (dx()) kernels::map_gradient(d.stream, d.computes.type, function_, x(), y(), dy(), dx(), all(), inputs_[0].add);
}

void drawn::vary(const rg_batch& b) const {
  if (!numbers_.there()) return;
  numbers_.host()[0] = rg::derive_seed(b.seed, b.step, layer_, rg::stream_dropout);
  numbers_.host()[1] = b.first_sample;
}

kernels::dropping drawn::of(const run& r) const {
  if (!r.training || p_ <= 0) return {nullptr, nullptr, 0, 1};
  return {.seed = numbers_.device(),
          .first = numbers_.device() + 1,
          .threshold = static_cast<std::uint32_t>(std::lround(p_ * 65536)),
          .scale = static_cast<float>(1 / (1 - p_))};
}

void dropout::forward(device& d, const run& r) {
  if (r.training)
    kernels::dropout(d.stream, d.computes.type, drawn_.of(r), output_->lies, x(), y(), batch, false);
  else
    kernels::copy(d.stream, d.computes.type, x(), y(), all(), false);
}

void dropout::backward(device& d, const run& r) {
  if (dx()) kernels::dropout(d.stream, d.computes.type, drawn_.of(r), output_->lies, dy(), dx(), batch, inputs_[0].add);
}

void addition::forward(device& d, const run&) {
  kernels::sum(d.stream, d.computes.type, x(0), x(1), y(), all());
}

void addition::backward(device& d, const run&) {
  for (const edge& e : inputs_)
    if (e.from->gradient) kernels::copy(d.stream, d.computes.type, dy(), e.from->gradient, all(), e.add);
}

picture relayout::like(const value& v, const value& other) {
  return v.shape.size() < other.shape.size() ? picture{other.lies.channels, other.lies.spatial, false} : v.lies;
}

void relayout::forward(device& d, const run&) {
  const value &in = *inputs_[0].from, &out = *output_;
  kernels::relayout(d.stream, in.type, like(in, out), x(), out.type, like(out, in), y(), batch, false);
}

void relayout::backward(device& d, const run&) {
  const value &in = *inputs_[0].from, &out = *output_;
  if (dx())
    kernels::relayout(d.stream, out.type, like(out, in), dy(), in.type, like(in, out), dx(), batch, inputs_[0].add);
}

void concatenation::forward(device& d, const run&) {
  const auto width = static_cast<std::uint32_t>(output_->elements());
  std::uint32_t first = 0;
  for (const edge& e : inputs_) {
    const auto part = static_cast<std::uint32_t>(e.from->elements());
    kernels::copy_columns(d.stream, d.computes.type, {part, 0, width, first, part}, e.from->data, y(), batch, false);
    first += part;
  }
}

void concatenation::backward(device& d, const run&) {
  const auto width = static_cast<std::uint32_t>(output_->elements());
  std::uint32_t first = 0;
  for (const edge& e : inputs_) {
    const auto part = static_cast<std::uint32_t>(e.from->elements());
    if (e.from->gradient)
      kernels::copy_columns(d.stream, d.computes.type, {width, first, part, 0, part}, dy(), e.from->gradient, batch,
                            e.add);
    first += part;
  }
}

void cosine::prepare(device&) {
  sizes_.reserve(3 * batch * sizeof(float));
}

void cosine::forward(device& d, const run&) {
  kernels::cosine(d.stream, d.computes.type, x(0), x(1), y(), sizes_.get(), batch,
                  static_cast<std::uint32_t>(inputs_[0].from->elements()));
}

void cosine::backward(device& d, const run&) {
  for (std::size_t i = 0; i < 2; ++i)
    if (dx(i))
      kernels::cosine_gradient(d.stream, d.computes.type, x(i), x(1 - i), dy(), sizes_.get(), i == 1, dx(i), batch,
                               static_cast<std::uint32_t>(inputs_[0].from->elements()), inputs_[i].add);
}

} // namespace cudnn

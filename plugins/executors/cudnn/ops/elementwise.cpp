// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise.hpp"

#include "kernels/elementwise.hpp"

namespace cudnn {

void map::forward(device& d, const run&) {
  kernels::map(d.stream, d.computes.type, function_, x(), y(), all());
}

void map::backward(device& d, const run&) {
  if (dx()) kernels::map_gradient(d.stream, d.computes.type, function_, x(), y(), dy(), dx(), all(), inputs_[0].add);
}

void addition::forward(device& d, const run&) {
  kernels::sum(d.stream, d.computes.type, x(0), x(1), y(), all());
}

void addition::backward(device& d, const run&) {
  for (const edge& e : inputs_)
    if (e.from->gradient) kernels::copy(d.stream, d.computes.type, dy(), e.from->gradient, all(), e.add);
}

image_layout relayout::like(const value& v, const value& other) {
  return v.shape.size() < other.shape.size() ? image_layout{other.layout.channels, other.layout.spatial, false}
                                             : v.layout;
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

} // namespace cudnn

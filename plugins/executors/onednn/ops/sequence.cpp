// SPDX-License-Identifier: Apache-2.0
#include "ops/sequence.hpp"

#include "runtime/memory_plan.hpp"

#include <regatta/random.hpp>

#include <algorithm>
#include <cmath>

namespace onednn {

std::size_t mask_bytes(std::size_t elements) {
  return blocks(elements, 8) + 8;
}

dropout_draw::dropout_draw(const run& r, double p, std::uint32_t layer)
    : seed(rg::derive_seed(r.batch->seed, r.batch->step, layer, rg::stream_dropout)),
      threshold(static_cast<std::uint32_t>(std::lround(p * 65536))) {}

// ------------------------------------------------------------------------------------------------------ row_map

void row_map::plan(memory_plan& m) {
  rows_ = m.batch() * places(*output_);
  (function_ == row_function::gelu ? inputs_[0].from : output_)->kept = true;
}

void row_map::forward(run&) {
  const std::size_t size = features(*output_);
  parallel(dev_, blocks(rows_, row_block), [&](std::size_t b) {
    const std::size_t at = b * row_block * size;
    map_pass<float> p;
    p.count = std::min(row_block, rows_ - b * row_block) * size;
    p.x = inputs_[0].from->data + at;
    p.y = output_->data + at;
    dev_.kernels->sequence.map_floats.forward[static_cast<int>(function_)](p);
  });
}

void row_map::backward(run&) {
  if (!inputs_[0].gradient) return;
  const std::size_t size = features(*output_);
  parallel(dev_, blocks(rows_, row_block), [&](std::size_t b) {
    const std::size_t at = b * row_block * size;
    map_gradient_pass<float> p;
    p.rows = std::min(row_block, rows_ - b * row_block);
    p.columns = p.stride = size;
    p.x = inputs_[0].from->data + at;
    p.y = output_->data + at;
    p.dy = output_->gradient + at;
    p.dx = inputs_[0].gradient + at;
    dev_.kernels->sequence.map_floats.gradient[static_cast<int>(function_)](p);
  });
}

// ---------------------------------------------------------------------------------------------------- row_stage

row_stage::row_stage(std::string name, value* in, value* out, const row_stages& s, const device& dev)
    : op(std::move(name), s.residual ? std::vector<value*>{in, s.residual} : std::vector<value*>{in}, out), dev_(dev),
      stages_(s) {
  if (s.scale) weights_ = {s.scale, s.bias};
}

void row_stage::plan(memory_plan& m) {
  batch_ = m.batch();
  const std::size_t elements = output_->elements();
  if (stages_.dropout > 0) {
    mask_stride_ = mask_bytes(elements);
    mask_slot_ = m.ask_kept(batch_ * mask_stride_);
  }
  if (!stages_.scale) return;
  normal_slot_ = m.ask_kept(batch_ * elements * sizeof(float));
  inverse_.resize(batch_ * places(*output_));
  sums_.resize(batch_ * 2 * features(*output_));
}

void row_stage::attach(const memory_plan& m) {
  mask_ = m.at_slot<std::uint8_t>(mask_slot_);
  normal_ = m.at_slot(normal_slot_);
}

void row_stage::forward(run& r) {
  const std::size_t elements = output_->elements();
  dropped_ = r.training && stages_.dropout > 0;
  const dropout_draw draw(r, stages_.dropout, stages_.layer);
  parallel(dev_, batch_, [&](std::size_t s) {
    stage_pass p;
    p.rows = places(*output_);
    p.size = features(*output_);
    if (dropped_) {
      std::uint8_t* mask = mask_ + s * mask_stride_;
      dev_.kernels->sequence.draw(mask, 0, blocks(elements, 8), draw.seed, r.batch->first_sample + s, draw.threshold);
      p.mask = mask;
      p.keep_scale = static_cast<float>(1 / (1 - stages_.dropout));
    }
    p.x = inputs_[0].from->data + s * elements;
    if (stages_.residual) p.residual = stages_.residual->data + s * elements;
    p.y = output_->data + s * elements;
    if (stages_.scale) {
      p.scale = stages_.scale->data;
      p.bias = stages_.bias->data;
      p.epsilon = static_cast<float>(stages_.epsilon);
      p.normal = normal_ + s * elements;
      p.inverse = inverse_.data() + s * p.rows;
    }
    dev_.kernels->sequence.stage(p);
  });
}

void row_stage::backward(run& r) {
  const std::size_t elements = output_->elements(), size = features(*output_);
  std::fill(sums_.begin(), sums_.end(), 0.0F);
  parallel(dev_, batch_, [&](std::size_t s) {
    stage_gradient_pass p;
    p.rows = places(*output_);
    p.size = size;
    if (dropped_) {
      p.mask = mask_ + s * mask_stride_;
      p.keep_scale = static_cast<float>(1 / (1 - stages_.dropout));
    }
    p.dy = output_->gradient + s * elements;
    if (inputs_[0].gradient) p.dx = inputs_[0].gradient + s * elements;
    if (stages_.residual && inputs_[1].gradient) p.dresidual = inputs_[1].gradient + s * elements;
    if (stages_.scale) {
      p.scale = stages_.scale->data;
      p.normal = normal_ + s * elements;
      p.inverse = inverse_.data() + s * p.rows;
      p.dscale = sums_.data() + 2 * s * size;
      p.dbias = p.dscale + size;
    }
    dev_.kernels->sequence.stage_gradient(p);
  });
  if (!stages_.scale) return;
  for (weight* w : {stages_.scale, stages_.bias}) {
    if (!adds(r, *w)) std::fill_n(w->gradient, rg::storage_of(w->info), 0.0F);
    const float* sums = sums_.data() + (w == stages_.bias ? size : 0);
    for (std::size_t s = 0; s < batch_; ++s) dev_.kernels->add(w->gradient, sums + 2 * s * size, size);
  }
}

} // namespace onednn

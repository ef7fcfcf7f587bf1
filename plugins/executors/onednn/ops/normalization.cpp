// SPDX-License-Identifier: Apache-2.0
#include "ops/normalization.hpp"

#include "runtime/memory_plan.hpp"

#include <regatta/random.hpp>

#include <algorithm>
#include <cmath>

namespace onednn {

template <class T>
activation<T>::activation(std::string name, value* in, value* residual, value* out, const stages& s, const device& dev)
    : op(std::move(name), residual ? std::vector<value*>{in, residual} : std::vector<value*>{in}, out), dev_(dev),
      stages_(s), lanes_(dev.kernels->lanes), blocks_((in->channels + lanes_ - 1) / lanes_) {
  if (s.norm) weights_ = {s.scale, s.bias, s.mean, s.variance};
  if (s.folded) weights_.push_back(s.folded);
}

template <class T> unsigned activation<T>::flags(bool training) const {
  return (stages_.norm ? with_norm : 0U) | (residual() ? with_residual : 0U) | (stages_.relu ? with_relu : 0U) |
         (stages_.pool ? with_pool : 0U) | (training && stages_.dropout > 0 ? with_dropout : 0U) |
         (training && masks() ? record_mask : 0U);
}

template <class T> void activation<T>::plan(memory_plan& m) {
  value& in = *inputs_[0].from;
  batch_ = m.batch();
  in.kept = in.kept || stages_.norm;
  if (masks()) mask_slot_ = m.ask_kept(batch_ * blocks_ * in.spatial() * sizeof(mask_word));
  if (stages_.norm) {
    mean_.resize(blocks_ * lanes_);
    inverse_.resize(blocks_ * lanes_);
  }
  // With few channel blocks per thread, the samples of a block are split into parts, so that all threads have work.
  const auto threads = static_cast<std::size_t>(dev_.threads);
  parts_ = blocks_ % threads == 0 || blocks_ >= 4 * threads ? 1 : std::min(threads, batch_);
  sums_.resize(parts_ * blocks_ * lanes_);
  products_.resize(parts_ * blocks_ * lanes_);
  coefficients_.resize(3 * blocks_ * lanes_);
}

template <class T> void activation<T>::attach(const memory_plan& m) {
  mask_ = m.at_slot<mask_word>(mask_slot_);
}

// The operands of one part of a channel block.
template <class T> pass_of<T> activation<T>::view(std::size_t block, std::size_t part) const {
  const value &in = *inputs_[0].from, &out = *output_;
  const std::size_t first = batch_ * part / parts_, last = batch_ * (part + 1) / parts_;
  pass_of<T> p;
  p.samples = last - first;
  p.height = in.height;
  p.width = in.width;
  p.x_stride = in.stride;
  p.y_stride = out.stride;
  p.mask_stride = blocks_ * in.spatial();
  const std::size_t x = first * in.stride + block * in.spatial() * lanes_;
  const std::size_t y = first * out.stride + block * out.spatial() * lanes_;
  auto at = [](float* base, std::size_t offset) { return base ? as<T>(base) + offset : nullptr; };
  p.x = at(in.data, x);
  p.y = at(out.data, y);
  p.dy = at(out.gradient, y);
  p.dx = at(inputs_[0].gradient, x);
  if (residual()) {
    p.r = at(inputs_[1].from->data, x);
    p.dr = at(inputs_[1].gradient, x);
  }
  p.mask = mask_ ? mask_ + first * p.mask_stride + block * in.spatial() : nullptr;
  p.scale = scale_;
  const float* c = coefficients_.data() + 3 * block * lanes_;
  p.a = c;
  p.b = c + lanes_;
  p.c = c + 2 * lanes_;
  return p;
}

// Runs reduce(block, part), then finish(block), then apply(block, part), for all blocks and parts. If blocks are not
// split, one thread runs the three in a row for a block, so that apply() finds the block in the cache.
template <class T>
template <class Reduce, class Finish, class Apply>
void activation<T>::over_blocks(const Reduce& reduce, const Finish& finish, const Apply& apply) const {
  if (parts_ == 1) {
    parallel(dev_, blocks_, [&](std::size_t b) {
      reduce(b, std::size_t{0});
      finish(b);
      apply(b, std::size_t{0});
    });
  } else {
    parallel(dev_, blocks_ * parts_, [&](std::size_t i) { reduce(i / parts_, i % parts_); });
    parallel(dev_, blocks_, finish);
    parallel(dev_, blocks_ * parts_, [&](std::size_t i) { apply(i / parts_, i % parts_); });
  }
}

// Returns a channel's sums over all parts.
template <class T> typename activation<T>::totals activation<T>::total(std::size_t channel) const {
  totals t{};
  const std::size_t block = channel / lanes_, lane = channel % lanes_;
  for (std::size_t part = 0; part < parts_; ++part) {
    t.sum += sums_[(block * parts_ + part) * lanes_ + lane];
    t.product += products_[(block * parts_ + part) * lanes_ + lane];
  }
  return t;
}

template <class T> void activation<T>::forward(run& r) {
  scale_ = r.training && stages_.dropout > 0 ? static_cast<float>(1 / (1 - stages_.dropout)) : 1.0F;
  const bool draws = r.training && stages_.dropout > 0;
  const std::uint64_t seed =
      draws ? rg::derive_seed(r.batch->seed, r.batch->step, stages_.layer, rg::stream_dropout) : 0;
  const auto threshold = static_cast<std::uint32_t>(std::lround(stages_.dropout * 65536));
  auto* run_pass = dev_.kernels->passes<T>().forward[flags(r.training)];
  const value& in = *inputs_[0].from;

  auto apply = [&](std::size_t block, std::size_t part) {
    const pass_of<T> p = view(block, part);
    if (draws) {
      const std::size_t first = batch_ * part / parts_;
      dev_.kernels->dropout({.mask = p.mask,
                             .samples = p.samples,
                             .spatial = in.spatial(),
                             .mask_stride = p.mask_stride,
                             .first_channel = block * lanes_,
                             .seed = seed,
                             .sample = r.batch->first_sample + first,
                             .threshold = threshold});
    }
    run_pass(p);
  };
  auto nothing = [](std::size_t, std::size_t) {};
  if (!stages_.norm)
    over_blocks(
        nothing, [](std::size_t) {}, apply);
  else if (r.training)
    over_blocks([&](std::size_t block, std::size_t part) { measure(block, part); },
                [&](std::size_t block) { normalise_by_batch(block); }, apply);
  else
    over_blocks(
        nothing, [&](std::size_t block) { normalise_by_state(block); }, apply);
}

// Reads the block's first elements. They are subtracted before squares are summed: any number near the mean keeps the
// squares small.
template <class T> void activation<T>::shift_of(std::size_t block, float* shift) const {
  const T* first = view(block, 0).x;
  for (std::size_t lane = 0; lane < lanes_; ++lane) shift[lane] = static_cast<float>(first[lane]);
}

template <class T> void activation<T>::measure(std::size_t block, std::size_t part) {
  const std::size_t at = (block * parts_ + part) * lanes_;
  std::fill_n(sums_.data() + at, lanes_, 0.0);
  std::fill_n(products_.data() + at, lanes_, 0.0);
  alignas(64) float shift[max_lanes];
  shift_of(block, shift);
  pass_of<T> p = view(block, part);
  p.a = shift;
  dev_.kernels->passes<T>().moments(p, sums_.data() + at, products_.data() + at);
}

template <class T> void activation<T>::normalise_by_batch(std::size_t block) {
  const value& in = *inputs_[0].from;
  const double count = static_cast<double>(batch_) * static_cast<double>(in.spatial());
  alignas(64) float shift[max_lanes];
  shift_of(block, shift);
  for (std::size_t lane = 0; lane < lanes_; ++lane) {
    const std::size_t c = block * lanes_ + lane;
    const totals t = total(c);
    const double offset = t.sum / count;
    const double variance = std::max(0.0, t.product / count - offset * offset);
    const double mean = shift[lane] + offset;
    const double inverse = 1 / std::sqrt(variance + stages_.epsilon);
    mean_[c] = static_cast<float>(mean);
    inverse_[c] = static_cast<float>(inverse);
    set_affine(c, mean, inverse);
    if (c >= in.channels) continue;
    const double folded = stages_.folded ? stages_.folded->data[c] : 0;
    auto follow = [&](float& state, double now) {
      state = static_cast<float>(stages_.momentum * state + (1 - stages_.momentum) * now);
    };
    follow(stages_.mean->data[c], mean + folded);
    follow(stages_.variance->data[c], variance);
  }
}

template <class T> void activation<T>::normalise_by_state(std::size_t block) {
  for (std::size_t c = block * lanes_; c < (block + 1) * lanes_; ++c) {
    const bool real = c < inputs_[0].from->channels;
    const double folded = real && stages_.folded ? stages_.folded->data[c] : 0;
    const double mean = real ? stages_.mean->data[c] - folded : 0;
    set_affine(c, mean, 1 / std::sqrt((real ? stages_.variance->data[c] : 1) + stages_.epsilon));
  }
}

// Sets a and b of y = a x + b for channel c. Padding channels have scale and bias 0.
template <class T> void activation<T>::set_affine(std::size_t c, double mean, double inverse) {
  float* k = coefficients_.data() + 3 * (c / lanes_) * lanes_ + c % lanes_;
  const double a = stages_.scale->data[c] * inverse;
  k[0] = static_cast<float>(a);
  k[lanes_] = static_cast<float>(stages_.bias->data[c] - mean * a);
}

// With g the masked gradient, xn the normalised input and M the elements per channel:
//   d bias = sum g,  d scale = sum g xn,  dx = scale / deviation * (g - sum g / M - xn * sum(g xn) / M).
// The gradient of the residual is g. If it is wanted, the reduction stores g there, and the last pass reads g from
// there.
template <class T> void activation<T>::backward(run& r) {
  const bool pool = stages_.pool;
  const bool adds_other = residual() && inputs_[1].gradient;
  const pass_table<T>& kernels = dev_.kernels->passes<T>();
  auto* run_pass = kernels.backward[flags(true) & (with_norm | with_pool)];
  auto apply = [&](std::size_t block, std::size_t part) {
    if (!inputs_[0].gradient) return;
    pass_of<T> p = view(block, part);
    if (adds_other) {
      p.dy = p.dr;
      p.mask = nullptr;
    }
    run_pass(p);
  };
  auto nothing = [](std::size_t, std::size_t) {};
  if (!stages_.norm)
    return over_blocks(
        nothing, [](std::size_t) {}, apply);

  over_blocks(
      [&](std::size_t block, std::size_t part) {
        const std::size_t at = (block * parts_ + part) * lanes_;
        std::fill_n(sums_.data() + at, lanes_, 0.0);
        std::fill_n(products_.data() + at, lanes_, 0.0);
        pass_of<T> p = view(block, part);
        p.a = mean_.data() + block * lanes_;
        (adds_other ? kernels.reduce_residual : kernels.reduce[pool])(p, sums_.data() + at, products_.data() + at);
      },
      [&](std::size_t block) { differentiate(block, r); }, apply);
  if (stages_.folded) { // batch norm cancels this bias: its gradient is zero
    weight& w = *stages_.folded;
    if (!adds(r, w)) std::fill_n(w.gradient, rg::storage_of(w.info), 0.0F);
  }
}

template <class T> void activation<T>::differentiate(std::size_t block, const run& r) {
  const value& in = *inputs_[0].from;
  const double count = static_cast<double>(batch_) * static_cast<double>(in.spatial());
  float* k = coefficients_.data() + 3 * block * lanes_;
  for (std::size_t lane = 0; lane < lanes_; ++lane) {
    const std::size_t c = block * lanes_ + lane;
    const bool real = c < in.channels;
    const totals t = real ? total(c) : totals{};
    const double inverse = inverse_[c];
    const double bias = scale_ * t.sum, scale = scale_ * t.product * inverse;
    auto give = [&](const weight& w, double g) {
      float& out = w.gradient[c];
      out = static_cast<float>(adds(r, w) ? out + g : g);
    };
    give(*stages_.bias, bias);
    give(*stages_.scale, scale);
    const double a = stages_.scale->data[c] * inverse;
    const double slope = -a * inverse * scale / count;
    k[lane] = static_cast<float>(a * scale_);
    k[lanes_ + lane] = static_cast<float>(slope);
    k[2 * lanes_ + lane] = static_cast<float>(-a * bias / count - slope * mean_[c]);
  }
}

template class activation<float>;
template class activation<bf16>;

} // namespace onednn

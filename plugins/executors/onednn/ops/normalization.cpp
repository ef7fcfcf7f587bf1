// SPDX-License-Identifier: Apache-2.0
#include "ops/normalization.hpp"

#include "ops/dropout.hpp"
#include "runtime/memory_plan.hpp"

#include <regatta/random.hpp>

#include <algorithm>
#include <cmath>

namespace onednn {

template <class T>
fused_batch_norm<T>::fused_batch_norm(std::string name, value* in, value* residual, value* out,
                                      const batch_norm_stages& s, const device& dev)
    : op(std::move(name), residual ? std::vector<value*>{in, residual} : std::vector<value*>{in}, out), dev_(dev),
      stages_(s), lanes_(dev.kernels->lanes), blocks_((in->channels() + lanes_ - 1) / lanes_) {
  if (s.norm) weights_ = {s.scale, s.bias, s.mean, s.variance};
  if (s.folded) weights_.push_back(s.folded);
  if (!s.sync) return;
  shared_.resize(2 * in->channels() + 1);
  dev.collectives.reserve(shared_.size());
  forward_name_ = name_ + ", mean and variance";
  backward_name_ = name_ + ", gradient";
}

template <class T> unsigned fused_batch_norm<T>::flags(bool training) const {
  return (stages_.norm ? with_norm : 0U) | (residual() ? with_residual : 0U) | (stages_.relu ? with_relu : 0U) |
         (stages_.pool ? with_pool : 0U) | (training && stages_.dropout > 0 ? with_dropout : 0U) |
         (training && masks() ? record_mask : 0U);
}

template <class T> void fused_batch_norm<T>::plan(memory_plan& m) {
  value& in = *inputs_[0].from;
  batch_ = m.batch();
  in.kept = in.kept || stages_.norm;
  if (masks()) mask_slot_ = m.request_kept(batch_ * blocks_ * in.spatial() * sizeof(mask_word));
  if (stages_.norm) {
    mean_.resize(blocks_ * lanes_);
    inverse_.resize(blocks_ * lanes_);
  }
  // With few channel blocks per thread, the samples of a block are split into slices, so that all threads have work.
  const auto threads = static_cast<std::size_t>(dev_.threads);
  slices_ = blocks_ % threads == 0 || blocks_ >= 4 * threads ? 1 : std::min(threads, batch_);
  sums_.resize(slices_ * blocks_ * lanes_);
  products_.resize(slices_ * blocks_ * lanes_);
  coefficients_.resize(3 * blocks_ * lanes_);
}

template <class T> void fused_batch_norm<T>::attach(const memory_plan& m) {
  mask_ = m.at_slot<mask_word>(mask_slot_);
}

template <class T> batch_norm_pass<T> fused_batch_norm<T>::view(std::size_t block, std::size_t slice) const {
  const value &in = *inputs_[0].from, &out = *output_;
  const std::size_t first = batch_ * slice / slices_, last = batch_ * (slice + 1) / slices_;
  batch_norm_pass<T> p;
  p.samples = last - first;
  p.height = in.height();
  p.width = in.width();
  p.x_stride = in.stride;
  p.y_stride = out.stride;
  p.mask_stride = blocks_ * in.spatial();
  const std::size_t x = first * in.stride + block * in.spatial() * lanes_;
  const std::size_t y = first * out.stride + block * out.spatial() * lanes_;
  auto gradient = [](float* base, std::size_t offset) { return base ? as<T>(base) + offset : nullptr; };
  p.x = as<T>(in.data) + x;
  p.y = as<T>(out.data) + y;
  p.dy = gradient(out.gradient, y);
  p.dx = gradient(inputs_[0].gradient, x);
  if (residual()) {
    p.r = as<T>(inputs_[1].from->data) + x;
    p.dr = gradient(inputs_[1].gradient, x);
  }
  p.mask = mask_ ? mask_ + first * p.mask_stride + block * in.spatial() : nullptr;
  p.scale = scale_;
  const float* c = coefficients_.data() + 3 * block * lanes_;
  p.a = c;
  p.b = c + lanes_;
  p.c = c + 2 * lanes_;
  return p;
}

template <class T> template <class F> void fused_batch_norm<T>::each_slice(const F& f) const {
  parallel(dev_, blocks_ * slices_, [&](std::size_t i) { f(i / slices_, i % slices_); });
}

// If blocks are not split, one thread runs the three in a row for a block, so that apply() finds the block in the
// cache.
template <class T>
template <class Reduce, class Finish, class Apply>
void fused_batch_norm<T>::over_blocks(const Reduce& reduce, const Finish& finish, const Apply& apply) const {
  if (slices_ == 1) {
    parallel(dev_, blocks_, [&](std::size_t b) {
      reduce(b, std::size_t{0});
      finish(b);
      apply(b, std::size_t{0});
    });
  } else {
    each_slice(reduce);
    parallel(dev_, blocks_, finish);
    each_slice(apply);
  }
}

template <class T>
template <class Reduce, class Of, class Finish, class Apply>
void fused_batch_norm<T>::over_workers(const std::string& name, const Reduce& reduce, const Of& of,
                                       const Finish& finish, const Apply& apply) {
  each_slice(reduce);
  const std::size_t channels = inputs_[0].from->channels();
  for (std::size_t c = 0; c < channels; ++c) {
    const totals t = of(c);
    shared_[c] = t.sum;
    shared_[channels + c] = t.product;
  }
  shared_.back() = count();
  dev_.collectives.all_reduce(name.c_str(), shared_);
  parallel(dev_, blocks_, finish);
  each_slice(apply);
}

template <class T> typename fused_batch_norm<T>::totals fused_batch_norm<T>::total(std::size_t channel) const {
  totals t{};
  const std::size_t block = channel / lanes_, lane = channel % lanes_;
  for (std::size_t slice = 0; slice < slices_; ++slice) {
    t.sum += sums_[(block * slices_ + slice) * lanes_ + lane];
    t.product += products_[(block * slices_ + slice) * lanes_ + lane];
  }
  return t;
}

template <class T> void fused_batch_norm<T>::forward(run& r) {
  scale_ = r.training && stages_.dropout > 0 ? static_cast<float>(1 / (1 - stages_.dropout)) : 1.0F;
  const bool draws = r.training && stages_.dropout > 0;
  const std::uint64_t seed =
      draws ? rg::derive_seed(r.batch->seed, r.batch->step, stages_.layer, rg::stream_dropout) : 0;
  const auto threshold = static_cast<std::uint32_t>(std::lround(stages_.dropout * 65536));
  auto* run_pass = dev_.kernels->normalization.batch_norm<T>().forward[flags(r.training)];
  const value& in = *inputs_[0].from;

  auto apply = [&](std::size_t block, std::size_t slice) {
    const batch_norm_pass<T> p = view(block, slice);
    if (draws) {
      const std::size_t first = batch_ * slice / slices_;
      dev_.kernels->dropout.draw_blocked({.mask = p.mask,
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
  else if (r.training && syncs())
    over_workers(
        forward_name_, [&](std::size_t block, std::size_t slice) { measure(block, slice); },
        [&](std::size_t channel) { return moments_of(channel); }, [&](std::size_t block) { normalise_by_batch(block); },
        apply);
  else if (r.training)
    over_blocks([&](std::size_t block, std::size_t slice) { measure(block, slice); },
                [&](std::size_t block) { normalise_by_batch(block); }, apply);
  else
    over_blocks(
        nothing, [&](std::size_t block) { normalise_by_state(block); }, apply);
}

// These elements are subtracted before squares are summed: any number near the mean keeps the squares small.
template <class T> void fused_batch_norm<T>::shift_of(std::size_t block, float* shift) const {
  const T* first = view(block, 0).x;
  for (std::size_t lane = 0; lane < lanes_; ++lane) shift[lane] = static_cast<float>(first[lane]);
}

template <class T> void fused_batch_norm<T>::measure(std::size_t block, std::size_t slice) {
  const std::size_t at = (block * slices_ + slice) * lanes_;
  std::fill_n(sums_.data() + at, lanes_, 0.0);
  std::fill_n(products_.data() + at, lanes_, 0.0);
  alignas(64) float shift[max_lanes];
  shift_of(block, shift);
  batch_norm_pass<T> p = view(block, slice);
  p.a = shift;
  dev_.kernels->normalization.batch_norm<T>().moments(p, sums_.data() + at, products_.data() + at);
}

// Each worker has subtracted another shift, so the sums of all workers are taken without it.
template <class T> typename fused_batch_norm<T>::totals fused_batch_norm<T>::moments_of(std::size_t channel) const {
  alignas(64) float shifts[max_lanes];
  shift_of(channel / lanes_, shifts);
  const totals t = total(channel);
  const double shift = shifts[channel % lanes_];
  return {t.sum + count() * shift, t.product + shift * (2 * t.sum + count() * shift)};
}

template <class T> void fused_batch_norm<T>::normalise_by_batch(std::size_t block) {
  const value& in = *inputs_[0].from;
  const bool shared = syncs();
  const double count = shared ? shared_.back() : this->count();
  alignas(64) float shift[max_lanes] = {};
  if (!shared) shift_of(block, shift);
  for (std::size_t lane = 0; lane < lanes_; ++lane) {
    const std::size_t c = block * lanes_ + lane;
    const totals t = !shared ? total(c) : c < in.channels() ? totals{shared_[c], shared_[in.channels() + c]} : totals{};
    const double offset = t.sum / count;
    const double variance = std::max(0.0, t.product / count - offset * offset);
    const double mean = shift[lane] + offset;
    const double inverse = 1 / std::sqrt(variance + stages_.epsilon);
    mean_[c] = static_cast<float>(mean);
    inverse_[c] = static_cast<float>(inverse);
    set_affine(c, mean, inverse);
    if (c >= in.channels()) continue;
    const double folded = stages_.folded ? stages_.folded->data[c] : 0;
    auto follow = [&](float& state, double now) {
      state = static_cast<float>(stages_.momentum * state + (1 - stages_.momentum) * now);
    };
    follow(stages_.mean->data[c], mean + folded);
    follow(stages_.variance->data[c], variance);
  }
}

template <class T> void fused_batch_norm<T>::normalise_by_state(std::size_t block) {
  for (std::size_t c = block * lanes_; c < (block + 1) * lanes_; ++c) {
    const bool real = c < inputs_[0].from->channels();
    const double folded = real && stages_.folded ? stages_.folded->data[c] : 0;
    const double mean = real ? stages_.mean->data[c] - folded : 0;
    set_affine(c, mean, 1 / std::sqrt((real ? stages_.variance->data[c] : 1) + stages_.epsilon));
  }
}

// Padding channels have scale and bias 0.
template <class T> void fused_batch_norm<T>::set_affine(std::size_t c, double mean, double inverse) {
  float* k = coefficients_.data() + 3 * (c / lanes_) * lanes_ + c % lanes_;
  const double a = stages_.scale->data[c] * inverse;
  k[0] = static_cast<float>(a);
  k[lanes_] = static_cast<float>(stages_.bias->data[c] - mean * a);
}

// With g the masked gradient, xn the normalised input and M the elements per channel:
//   d bias = sum g,  d scale = sum g xn,  dx = scale / deviation * (g - sum g / M - xn * sum(g xn) / M).
// A synchronised batch norm takes the sums and M in dx over all workers.
// The gradient of the residual is g. If it is wanted, the reduction stores g there, and the last pass reads g from
// there.
template <class T> void fused_batch_norm<T>::backward(run& r) {
  const bool pool = stages_.pool;
  const bool adds_other = residual() && inputs_[1].gradient;
  const batch_norm_kernels<T>& kernels = dev_.kernels->normalization.batch_norm<T>();
  auto* run_pass = kernels.backward[flags(true) & (with_norm | with_pool)];
  auto apply = [&](std::size_t block, std::size_t slice) {
    if (!inputs_[0].gradient) return;
    batch_norm_pass<T> p = view(block, slice);
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

  const auto reduce = [&](std::size_t block, std::size_t slice) {
    const std::size_t at = (block * slices_ + slice) * lanes_;
    std::fill_n(sums_.data() + at, lanes_, 0.0);
    std::fill_n(products_.data() + at, lanes_, 0.0);
    batch_norm_pass<T> p = view(block, slice);
    p.a = mean_.data() + block * lanes_;
    (adds_other ? kernels.reduce_residual : kernels.reduce[pool])(p, sums_.data() + at, products_.data() + at);
  };
  const auto finish = [&](std::size_t block) { differentiate(block, r); };
  if (syncs())
    over_workers(
        backward_name_, reduce, [&](std::size_t channel) { return total(channel); }, finish, apply);
  else
    over_blocks(reduce, finish, apply);
  if (stages_.folded) { // batch norm cancels this bias: its gradient is zero
    weight& w = *stages_.folded;
    if (!adds(r, w)) std::fill_n(w.gradient, rg::storage_of(w.info), 0.0F);
  }
}

template <class T> void fused_batch_norm<T>::differentiate(std::size_t block, const run& r) {
  const value& in = *inputs_[0].from;
  const bool shared = syncs();
  const double count = shared ? shared_.back() : this->count();
  float* k = coefficients_.data() + 3 * block * lanes_;
  for (std::size_t lane = 0; lane < lanes_; ++lane) {
    const std::size_t c = block * lanes_ + lane;
    const bool real = c < in.channels();
    const totals t = real ? total(c) : totals{};
    const double inverse = inverse_[c];
    auto give = [&](const weight& w, double g) {
      float& out = w.gradient[c];
      out = static_cast<float>(adds(r, w) ? out + g : g);
    };
    // Of this worker's samples: the exchange of gradients adds those of the others.
    give(*stages_.bias, scale_ * t.sum);
    give(*stages_.scale, scale_ * t.product * inverse);
    const totals all = shared && real ? totals{shared_[c], shared_[in.channels() + c]} : t;
    const double bias = scale_ * all.sum, scale = scale_ * all.product * inverse;
    const double a = stages_.scale->data[c] * inverse;
    const double x_factor = -a * inverse * scale / count;
    k[lane] = static_cast<float>(a * scale_);
    k[lanes_ + lane] = static_cast<float>(x_factor);
    k[2 * lanes_ + lane] = static_cast<float>(-a * bias / count - x_factor * mean_[c]);
  }
}

template class fused_batch_norm<float>;
template class fused_batch_norm<bf16>;

fused_layer_norm::fused_layer_norm(std::string name, value* in, value* out, const layer_norm_stages& s,
                                   const device& dev)
    : op(std::move(name), s.residual ? std::vector<value*>{in, s.residual} : std::vector<value*>{in}, out), dev_(dev),
      stages_(s) {
  if (s.scale) weights_ = {s.scale, s.bias};
}

void fused_layer_norm::plan(memory_plan& m) {
  batch_ = m.batch();
  const std::size_t elements = output_->elements();
  if (stages_.dropout > 0) {
    mask_stride_ = mask_bytes(elements);
    mask_slot_ = m.request_kept(batch_ * mask_stride_);
  }
  if (!stages_.scale) return;
  normal_slot_ = m.request_kept(batch_ * elements * sizeof(float));
  inverse_.resize(batch_ * output_->positions());
  sums_.resize(batch_ * 2 * output_->features());
}

void fused_layer_norm::attach(const memory_plan& m) {
  mask_ = m.at_slot<std::uint8_t>(mask_slot_);
  normal_ = m.at_slot(normal_slot_);
}

void fused_layer_norm::forward(run& r) {
  const std::size_t elements = output_->elements();
  dropped_ = r.training && stages_.dropout > 0;
  const dropout_draw draw(r, stages_.dropout, stages_.layer);
  parallel(dev_, batch_, [&](std::size_t s) {
    layer_norm_pass p;
    p.rows = output_->positions();
    p.size = output_->features();
    if (dropped_) {
      std::uint8_t* mask = mask_ + s * mask_stride_;
      dev_.kernels->dropout.draw(mask, 0, blocks(elements, 8), draw.seed, r.batch->first_sample + s, draw.threshold);
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
    dev_.kernels->normalization.layer_norm(p);
  });
}

void fused_layer_norm::backward(run& r) {
  const std::size_t elements = output_->elements(), size = output_->features();
  std::fill(sums_.begin(), sums_.end(), 0.0F);
  parallel(dev_, batch_, [&](std::size_t s) {
    layer_norm_gradient_pass p;
    p.rows = output_->positions();
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
    dev_.kernels->normalization.layer_norm_gradient(p);
  });
  if (!stages_.scale) return;
  for (weight* w : {stages_.scale, stages_.bias}) {
    if (!adds(r, *w)) std::fill_n(w->gradient, rg::storage_of(w->info), 0.0F);
    const float* sums = sums_.data() + (w == stages_.bias ? size : 0);
    for (std::size_t s = 0; s < batch_; ++s) dev_.kernels->elementwise.add(w->gradient, sums + 2 * s * size, size);
  }
}

} // namespace onednn

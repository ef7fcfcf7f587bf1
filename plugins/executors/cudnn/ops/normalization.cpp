// SPDX-License-Identifier: Apache-2.0
#include "ops/normalization.hpp"

#include "kernels/elementwise.hpp"
#include "kernels/normalization.hpp"

namespace cudnn {

batch_norm::batch_norm(std::string name, value* in, value* residual, value* out, const tensors& t, double epsilon,
                       double momentum, bool relu)
    : op(std::move(name), residual ? std::vector<value*>{in, residual} : std::vector<value*>{in}, out), t_(t),
      epsilon_(static_cast<float>(epsilon)), momentum_(static_cast<float>(momentum)), relu_(relu) {
  weights_ = {t.scale, t.bias, t.mean, t.variance};
}

void batch_norm::prepare(device& d) {
  mean_.reserve(output_->lies.channels * sizeof(float));
  inverse_.reserve(output_->lies.channels * sizeof(float));
  d.scratch.reserve(kernels::partials_of(output_->lies, batch) * sizeof(float));
}

void batch_norm::forward(device& d, const run& r) {
  const number t = d.computes.type;
  const kernels::normalising n{output_->lies, batch,          t_.scale->data, t_.bias->data,
                               mean_.get(),   inverse_.get(), epsilon_};
  if (r.training)
    kernels::batch_statistics(d.stream, t, n, x(), t_.mean->data, t_.variance->data, momentum_, d.scratch.get());
  else
    kernels::running_statistics(d.stream, n, t_.mean->data, t_.variance->data);
  kernels::normalise(d.stream, t, n, x(), inputs_.size() > 1 ? x(1) : nullptr, relu_, y());
}

void batch_norm::backward(device& d, const run& r) {
  const kernels::normalising n{output_->lies, batch,          t_.scale->data, t_.bias->data,
                               mean_.get(),   inverse_.get(), epsilon_};
  const bool joined = inputs_.size() > 1;
  const kernels::normalise_gradients g{.dx = dx(),
                                       .dresidual = joined ? dx(1) : nullptr,
                                       .add_dx = inputs_[0].add,
                                       .add_residual = joined && inputs_[1].add,
                                       .dscale = t_.scale->gradient,
                                       .dbias = t_.bias->gradient,
                                       .add_scale = adds(r, *t_.scale),
                                       .add_bias = adds(r, *t_.bias)};
  kernels::normalise_gradient(d.stream, d.computes.type, n, x(), y(), dy(), relu_, g, d.scratch.get());
}

void pooling::prepare(device&) {
  if (!average_) places_.reserve(all() * sizeof(std::int32_t));
}

void pooling::forward(device& d, const run&) {
  const picture &p = inputs_[0].from->lies, &q = output_->lies;
  if (average_)
    kernels::average_pool(d.stream, d.computes.type, window_, p, q, x(), y(), batch);
  else
    kernels::max_pool(d.stream, d.computes.type, window_, p, q, x(), y(), places_.get<std::int32_t>(), batch);
}

void pooling::backward(device& d, const run&) {
  if (!dx()) return;
  const picture &p = inputs_[0].from->lies, &q = output_->lies;
  const bool add = inputs_[0].add;
  if (average_)
    kernels::average_pool_gradient(d.stream, d.computes.type, window_, p, q, dy(), dx(), batch, add);
  else
    kernels::max_pool_gradient(d.stream, d.computes.type, window_, p, q, dy(), places_.get<std::int32_t>(), dx(), batch,
                               add);
}

void channel_scale::forward(device& d, const run&) {
  kernels::scale_channels(d.stream, d.computes.type, output_->lies, x(0), x(1), y(), batch, false);
}

void channel_scale::backward(device& d, const run&) {
  const picture& p = output_->lies;
  if (dx(1)) kernels::scale_channels_factors(d.stream, d.computes.type, p, x(0), dy(), dx(1), batch, inputs_[1].add);
  if (dx(0)) kernels::scale_channels(d.stream, d.computes.type, p, dy(), x(1), dx(0), batch, inputs_[0].add);
}

} // namespace cudnn

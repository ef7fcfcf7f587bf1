// SPDX-License-Identifier: Apache-2.0
#include "ops/normalization.hpp"

#include "kernels/channel_sums.hpp"
#include "kernels/normalization.hpp"

namespace cudnn {

batch_norm::batch_norm(std::string name, value* in, value* residual, value* out, const tensors& t, double epsilon,
                       double momentum, bool relu)
    : op(std::move(name), residual ? std::vector<value*>{in, residual} : std::vector<value*>{in}, out), t_(t),
      epsilon_(static_cast<float>(epsilon)), momentum_(static_cast<float>(momentum)), relu_(relu) {
  weights_ = {t.scale, t.bias, t.mean, t.variance};
}

void batch_norm::prepare(device& d) {
  mean_.reserve(output_->layout.channels * sizeof(float));
  inverse_.reserve(output_->layout.channels * sizeof(float));
  d.scratch.reserve(kernels::partials_of(output_->layout, batch) * sizeof(float));
}

void batch_norm::forward(device& d, const run& r) {
  const dtype t = d.computes.type;
  const kernels::batch_norm_args n{output_->layout, batch,          t_.scale->data, t_.bias->data,
                                   mean_.get(),     inverse_.get(), epsilon_};
  if (r.training)
    kernels::batch_statistics(d.stream, t, n, x(), t_.mean->data, t_.variance->data, momentum_, d.scratch.get());
  else
    kernels::running_statistics(d.stream, n, t_.mean->data, t_.variance->data);
  kernels::batch_norm(d.stream, t, n, x(), inputs_.size() > 1 ? x(1) : nullptr, relu_, y());
}

void batch_norm::backward(device& d, const run& r) {
  const kernels::batch_norm_args n{output_->layout, batch,          t_.scale->data, t_.bias->data,
                                   mean_.get(),     inverse_.get(), epsilon_};
  const bool joined = inputs_.size() > 1;
  const kernels::batch_norm_gradients g{.dx = dx(),
                                        .dresidual = joined ? dx(1) : nullptr,
                                        .add_dx = inputs_[0].add,
                                        .add_residual = joined && inputs_[1].add,
                                        .dscale = t_.scale->gradient,
                                        .dbias = t_.bias->gradient,
                                        .add_scale = adds(r, *t_.scale),
                                        .add_bias = adds(r, *t_.bias)};
  kernels::batch_norm_gradient(d.stream, d.computes.type, n, x(), y(), dy(), relu_, g, d.scratch.get());
}

layer_norm::layer_norm(std::string name, value* in, value* out, weight* scale, weight* bias, double epsilon)
    : op(std::move(name), {in}, out), scale_(scale), bias_(bias), epsilon_(static_cast<float>(epsilon)) {
  weights_ = {scale, bias};
}

void layer_norm::prepare(device& d) {
  mean_.reserve(rows() * sizeof(float));
  inverse_.reserve(rows() * sizeof(float));
  d.scratch.reserve(kernels::layer_norm_partials(rows(), features(*output_)) * sizeof(float));
}

void layer_norm::forward(device& d, const run&) {
  const kernels::layer_norm_args n{rows(),      features(*output_), scale_->data, bias_->data,
                                   mean_.get(), inverse_.get(),     epsilon_};
  kernels::layer_norm(d.stream, d.computes.type, n, x(), y());
}

void layer_norm::backward(device& d, const run& r) {
  const kernels::layer_norm_args n{rows(),      features(*output_), scale_->data, bias_->data,
                                   mean_.get(), inverse_.get(),     epsilon_};
  const kernels::layer_norm_gradients g{.dx = dx(),
                                        .dscale = scale_->gradient,
                                        .dbias = bias_->gradient,
                                        .add_dx = inputs_[0].add,
                                        .add_scale = adds(r, *scale_),
                                        .add_bias = adds(r, *bias_)};
  kernels::layer_norm_gradient(d.stream, d.computes.type, n, x(), dy(), g, d.scratch.get());
}

} // namespace cudnn

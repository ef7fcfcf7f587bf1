// SPDX-License-Identifier: Apache-2.0
#include "ops/epilogue.hpp"

#include "kernels/elementwise.hpp"
#include "kernels/normalization.hpp"

namespace cudnn {

void epilogue::prepare(device& d, const picture& p, std::size_t samples) {
  lies_ = p;
  samples_ = samples;
  if (bias_) d.scratch.reserve(kernels::partials_of(p, samples) * sizeof(float));
  if (function_ == function::gelu || function_ == function::softsign)
    before_.reserve(samples * p.elements() * size_of(d.computes.type));
}

void epilogue::forward(device& d, void* y) const {
  if (bias_ || function_)
    kernels::finish(d.stream, d.computes.type, {bias_ ? bias_->data : nullptr, function_, lies_}, y,
                    before_.get<void>(), samples_);
}

void epilogue::through_function(device& d, const void* y, void* dy) const {
  if (function_)
    kernels::map_gradient(d.stream, d.computes.type, *function_, before_.get<void>() ? before_.get<void>() : y, y, dy,
                          dy, samples_ * lies_.elements(), false);
}

void epilogue::sum_bias(device& d, const void* dy, bool add) const {
  if (bias_)
    kernels::channel_sums(d.stream, d.computes.type, dy, lies_, samples_, bias_->gradient, add, d.scratch.get());
}

void epilogue::backward(device& d, const void* y, void* dy, bool add) const {
  through_function(d, y, dy);
  sum_bias(d, dy, add);
}

beside epilogue::beside_a_product(bool mask) const {
  if (function_ && *function_ != function::relu) return beside::nothing;
  if (function_ && mask) return bias_ ? beside::bias_relu_mask : beside::relu_mask;
  if (function_) return bias_ ? beside::bias_relu : beside::relu;
  return bias_ ? beside::bias : beside::nothing;
}

} // namespace cudnn

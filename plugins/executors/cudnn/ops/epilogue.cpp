// SPDX-License-Identifier: Apache-2.0
#include "ops/epilogue.hpp"

#include "kernels/channel_sums.hpp"
#include "kernels/elementwise.hpp"

namespace cudnn {

void epilogue::prepare(device& d, const image_layout& p, std::size_t samples) {
  layout_ = p;
  samples_ = samples;
  if (bias_) d.scratch.reserve(kernels::partials_of(p, samples) * sizeof(float));
  if (function_ == function::gelu || function_ == function::softsign)
    before_.reserve(samples * p.elements() * size_of(d.computes.type));
}

void epilogue::forward(device& d, void* y) const {
  if (bias_ || function_)
    kernels::epilogue(d.stream, d.computes.type, {bias_ ? bias_->data : nullptr, function_, layout_}, y,
                      before_.get<void>(), samples_);
}

void epilogue::through_function(device& d, const void* y, void* dy) const {
  if (function_)
    kernels::map_gradient(d.stream, d.computes.type, *function_, before_.get<void>() ? before_.get<void>() : y, y, dy,
                          dy, samples_ * layout_.elements(), false);
}

void epilogue::sum_bias(device& d, const void* dy, bool add) const {
  if (bias_)
    kernels::channel_sums(d.stream, d.computes.type, dy, layout_, samples_, bias_->gradient, add, d.scratch.get());
}

void epilogue::backward(device& d, const void* y, void* dy, bool add) const {
  through_function(d, y, dy);
  sum_bias(d, dy, add);
}

gemm_epilogue epilogue::fused_epilogue() const {
  if (function_ && *function_ != function::relu) return gemm_epilogue::none;
  if (function_) return bias_ ? gemm_epilogue::bias_relu : gemm_epilogue::relu;
  return bias_ ? gemm_epilogue::bias : gemm_epilogue::none;
}

} // namespace cudnn

// SPDX-License-Identifier: Apache-2.0
//
// The epilogue of a GEMM or convolution as one pass over its result: a bias and a function of the sum; both are
// optional.
#pragma once

#include "lib/gemm.hpp"
#include "runtime/program.hpp"

#include <optional>

namespace cudnn {

class epilogue {
public:
  // `bias` null: none. `f` empty: identity. The bias must outlive this object.
  epilogue(weight* bias, std::optional<function> f) : bias_(bias), function_(f) {}
  weight* bias() const { return bias_; }
  // Returns whether the function is a ReLU.
  bool relu() const { return function_ == function::relu; }

  // Called once, from op::prepare(), before any other function below. p: layout of the result for one of `samples`
  // samples (or rows); the bias is per channel of it.
  void prepare(device& d, const image_layout& p, std::size_t samples);
  // Returns the bytes that are kept from the forward to the backward pass.
  std::size_t held() const { return before_.bytes(); }
  // Enqueues y = f(y + bias), in place.
  void forward(device& d, void* y) const;
  // Enqueues the backward pass: turns dy, the gradient of f's value y, into the gradient of f's argument, in place, and
  // sums that to the bias's gradient; with `add` it is added to weight::gradient. y is the result of forward(), or of a
  // GEMM or convolution with the epilogue fused_epilogue(). Overwrites d.scratch if there is a bias.
  void backward(device& d, const void* y, void* dy, bool add) const;
  // The two halves of backward(), in this order.
  void through_function(device& d, const void* y, void* dy) const;
  void sum_bias(device& d, const void* dy, bool add) const;
  // Returns the epilogue, bias included, that a GEMM or convolution can compute in place of forward(); `none` if there
  // is none. The only function possible is ReLU: others need the sum kept or differ from cuBLASLt's, whose GELU is the
  // approximation by tanh.
  gemm_epilogue fused_epilogue() const;

private:
  weight* bias_;
  std::optional<function> function_;
  image_layout layout_;
  std::size_t samples_ = 0;
  buffer before_; // the sum, if the function's derivative needs it
};

} // namespace cudnn

// SPDX-License-Identifier: Apache-2.0
//
// The epilogue of a GEMM or convolution as one pass over its result: a bias and a function of the sum; both are
// optional.
#pragma once

#include "product.hpp"
#include "program.hpp"

#include <optional>

namespace cudnn {

class epilogue {
public:
  epilogue(weight* bias, std::optional<function> f) : bias_(bias), function_(f) {}
  weight* bias() const { return bias_; }
  bool relu() const { return function_ == function::relu; }

  // Must be called first. p: layout of the result; `samples`: of the result.
  void prepare(device& d, const picture& p, std::size_t samples);
  // y = f(y + bias)
  void forward(device& d, void* y) const;
  // Turns dy, the gradient of y, into the gradient of the sum y + bias, in place, and computes the bias's gradient from
  // it; with `add` it is added.
  void backward(device& d, const void* y, void* dy, bool add) const;
  // The two halves of backward().
  void through_function(device& d, const void* y, void* dy) const;
  void sum_bias(device& d, const void* dy, bool add) const;
  // Returns the epilogue that a GEMM or convolution can compute itself; with `mask`, a ReLU also writes its mask. Only
  // ReLU is possible: other functions need the sum kept or differ from cuBLASLt's, whose GELU is the approximation by
  // tanh.
  beside beside_a_product(bool mask = false) const;

private:
  weight* bias_;
  std::optional<function> function_;
  picture lies_;
  std::size_t samples_ = 0;
  buffer before_; // the sum, if the function's derivative needs it
};

} // namespace cudnn

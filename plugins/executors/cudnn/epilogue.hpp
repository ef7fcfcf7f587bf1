// SPDX-License-Identifier: Apache-2.0
//
// What follows a product or a convolution, in one pass over what it made: a bias, and a function of the sum. Both may be
// missing.
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

  // Of `samples` that lie as p says.
  void prepare(device& d, const picture& p, std::size_t samples);
  // y = f(y + bias)
  void forward(device& d, void* y) const;
  // Makes dy that of the sum, in place, and the bias's gradient of it, `add`ed or not.
  void backward(device& d, const void* y, void* dy, bool add) const;
  // The two steps of that.
  void through_function(device& d, const void* y, void* dy) const;
  void sum_bias(device& d, const void* dy, bool add) const;
  // What of it a product or a convolution can do, with the `mask` of a ReLU. Functions but ReLU need the sum kept, too, or
  // are others than cuBLASLt's: its GELU is the approximation by tanh.
  beside beside_a_product(bool mask = false) const;

private:
  weight* bias_;
  std::optional<function> function_;
  picture lies_;
  std::size_t samples_ = 0;
  buffer before_; // the sum, where the function's slope needs it
};

} // namespace cudnn

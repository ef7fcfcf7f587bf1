// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace onednn {

struct softmax_sums {
  double most, sum, plain; // the maximum, the sum of exp(x - most), the sum of x
};

struct loss_kernels {
  // Returns the sums over one row of `size` logits, at least 1, from which softmax and loss are computed.
  softmax_sums (*logits)(const float* x, std::size_t size);
  // g[i] = scale * (exp(x[i] - shift) - less). With shift = log(sum of exp(x)), the first term is the softmax of x. g
  // may be x.
  void (*logits_gradient)(const float* x, float* g, std::size_t size, float shift, float scale, float less);
};

} // namespace onednn

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace onednn {

struct attention_kernels {
  // In place: p[i] = softmax(scale * p)[i], taken over all i < size with seen[i] > 0. Other p[i] become 0; all do if no
  // i has seen[i] > 0. Requires scale > 0.
  void (*softmax)(float* p, const float* seen, std::size_t size, float scale);
  // Turns the gradient d of a softmax's result p into that of its argument, in place: d[i] = scale * p[i] * (d[i] - sum
  // over j of d[j] p[j]).
  void (*softmax_gradient)(float* d, const float* p, std::size_t size, float scale);
};

} // namespace onednn

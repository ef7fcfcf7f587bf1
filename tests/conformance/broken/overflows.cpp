// SPDX-License-Identifier: Apache-2.0
//
// A softmax that does not subtract the largest logit: exp() overflows.
#include "interpreted.hpp"

#include <limits>

namespace {

struct mistaken : broken::interpreted {
  using interpreted::interpreted;
  double forward(const reference::batch& b) override {
    const double loss = interpreted::forward(b);
    for (const double z : reference_.values[reference_.inputs_of(ops_.size() - 1)[0]])
      if (z > 709) return std::numeric_limits<double>::quiet_NaN();
    return loss;
  }
};

struct executor : broken::runs<mistaken> {};

} // namespace

RG_PLUGIN("overflows", "1.0", rg::executor<executor>("overflows", "broken: large logits"))

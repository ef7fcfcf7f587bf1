// SPDX-License-Identifier: Apache-2.0
//
// top1 counts the samples whose label has the smallest logit.
#include "interpreted.hpp"

namespace {

struct mistaken : broken::interpreted {
  using interpreted::interpreted;
  std::size_t predicted(std::span<const double> logits) override {
    return static_cast<std::size_t>(std::min_element(logits.begin(), logits.end()) - logits.begin());
  }
};

struct executor : broken::runs<mistaken> {};

} // namespace

RG_PLUGIN("smallest_logit", "1.0", rg::executor<executor>("smallest_logit", "broken: the metric"))

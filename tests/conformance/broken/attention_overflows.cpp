// SPDX-License-Identifier: Apache-2.0
//
// An attention that does not subtract the largest logit: exp() overflows in fp32.
#include "interpreted.hpp"

#include <cmath>
#include <limits>

namespace {

struct mistaken : broken::interpreted {
  using interpreted::interpreted;
  double forward(const reference::batch& b) override {
    const double loss = interpreted::forward(b);
    for (std::size_t k = 0; k < ops_.size(); ++k)
      if (ops_[k] == "attention" && largest_logit(k, b.samples) > 88) return std::numeric_limits<double>::quiet_NaN();
    return loss;
  }
  // As if there were one head.
  double largest_logit(std::size_t k, std::size_t samples) const {
    const auto& from = reference_.inputs_of(k);
    const auto &query = reference_.values[from[0]], &key = reference_.values[from[1]];
    const std::size_t keys = reference_.values[from[3]].size() / samples, features = key.size() / samples / keys,
                      queries = query.size() / samples / features;
    double largest = 0;
    for (std::size_t s = 0; s < samples; ++s)
      for (std::size_t i = 0; i < queries; ++i)
        for (std::size_t j = 0; j < keys; ++j) {
          double product = 0;
          for (std::size_t f = 0; f < features; ++f)
            product += query[(s * queries + i) * features + f] * key[(s * keys + j) * features + f];
          largest = std::max(largest, product / std::sqrt(static_cast<double>(features)));
        }
    return largest;
  }
};

struct executor : broken::runs<mistaken> {};

} // namespace

RG_PLUGIN("attention_overflows", "1.0",
          rg::executor<executor>("attention_overflows", "broken: large logits of attention"))

// SPDX-License-Identifier: Apache-2.0
//
// flops_per_sample is that of a batch of 32 samples.
#include "interpreted.hpp"

namespace {

struct mistaken : broken::interpreted {
  using interpreted::interpreted;
  double flops() const override {
    double weights = 0;
    for (std::uint32_t t = 0; t < dense_; ++t) weights += static_cast<double>(rg::storage_of(tensors_[t]));
    return 32 * 1000 * weights; // of each sample about 6 for a weight of a dense layer, and more in a convolution
  }
};

struct executor : broken::runs<mistaken> {};

} // namespace

RG_PLUGIN("counts_the_batch", "1.0", rg::executor<executor>("counts_the_batch", "broken: operations of a batch"))

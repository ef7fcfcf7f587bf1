// SPDX-License-Identifier: Apache-2.0
//
// Defect: the initial weights are not those of the seed and the tensor.
#pragma once

#include "../interpreted.hpp"

#include <span>

namespace {

using namespace broken;

struct own_start : interpreted {
  using interpreted::interpreted;
  void start(const rg_tensor& t, std::uint32_t number, std::uint64_t seed, std::span<float> out) override {
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = t.init == RG_INIT_CONSTANT ? static_cast<float>(t.init_a)
                                          : 0.1F * rg::random_normals(seed, i, number, rg::stream_init)[0];
  }
};

struct initialises_by_its_own_rule : runs<own_start> {};

} // namespace

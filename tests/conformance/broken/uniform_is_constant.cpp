// SPDX-License-Identifier: Apache-2.0
//
// Weights that begin with uniform random numbers begin with a constant.
#include "interpreted.hpp"

namespace {

struct mistaken : broken::interpreted {
  using interpreted::interpreted;
  void start(const rg_tensor& t, std::uint32_t number, std::uint64_t seed, std::span<float> out) override {
    if (t.init == RG_INIT_UNIFORM) return std::fill(out.begin(), out.end(), 0.1F);
    interpreted::start(t, number, seed, out);
  }
};

struct executor : broken::runs<mistaken> {};

} // namespace

RG_PLUGIN("uniform_is_constant", "1.0", rg::executor<executor>("uniform_is_constant", "broken: uniform initial values"))

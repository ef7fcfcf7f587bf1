// SPDX-License-Identifier: Apache-2.0
//
// A device whose GEMM ignores beta and overwrites c; and a device whose GEMM is right.
#include "host_device.hpp"

namespace {

struct ignores_beta : broken::host_device {
  using host_device::host_device;
  rg_gemm mistaken(const rg_gemm& what) const override {
    rg_gemm g = what;
    g.beta = 0;
    return g;
  }
};

} // namespace

RG_PLUGIN("ignores_beta", "1.0", broken::component<broken::host_device>("multiplies", "nothing wrong"),
          broken::component<ignores_beta>("ignores_beta", "broken: products overwrite"))

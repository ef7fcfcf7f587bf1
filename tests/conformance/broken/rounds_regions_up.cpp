// SPDX-License-Identifier: Apache-2.0
//
// Mistake: bounds are checked for whole pages, so that a put writes behind the end of a region. Caught by test
// `one-sided-refusals`.
#include "shared.hpp"

namespace {

struct rounds_regions_up : shm_transport {
  using shm_transport::shm_transport;
  void* allocate(rg_region region, std::uint64_t bytes, const rg_memory& memory) {
    return shm_transport::allocate(region, round_up(bytes, 4096), memory);
  }
};

} // namespace

RG_PLUGIN("rounds_regions_up", "1.0",
          rg::transport<rounds_regions_up>("rounds_regions_up", "broken: peers reach the bytes behind a region"))

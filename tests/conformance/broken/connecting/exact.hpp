// SPDX-License-Identifier: Apache-2.0
//
// Correct; requires messages as long as their receives.
#pragma once

#include "../unix.hpp"

namespace {

struct exact : unix_transport {
  using unix_transport::unix_transport;
  rg_transport_caps caps() const {
    rg_transport_caps c = unix_transport::caps();
    c.flags |= RG_CAP_EXACT_SIZE;
    return c;
  }
};

} // namespace

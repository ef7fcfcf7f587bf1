// SPDX-License-Identifier: Apache-2.0
//
// Defect: truncates lengths to 31 bits.
#pragma once

#include "../unix.hpp"

namespace {

struct counts_in_31_bits : unix_transport {
  using unix_transport::unix_transport;
  rg_status send(const rg_transfer& t) {
    rg_transfer less = t;
    less.bytes &= 0x7fffffff;
    return unix_transport::send(less);
  }
};

} // namespace

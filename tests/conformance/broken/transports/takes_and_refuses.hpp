// SPDX-License-Identifier: Apache-2.0
//
// Defect: returns RG_AGAIN, but sends the message.
#pragma once

#include "../unix.hpp"

namespace {

struct takes_and_refuses : unix_transport {
  using unix_transport::unix_transport;
  rg_status send(const rg_transfer& t) {
    const rg_status s = unix_transport::send(t);
    return s == RG_OK && ++taken_ % 1000 == 0 ? RG_AGAIN : s;
  }
  std::uint64_t taken_ = 0;
};

} // namespace

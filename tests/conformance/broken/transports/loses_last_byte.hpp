// SPDX-License-Identifier: Apache-2.0
//
// Defect: a message of more than 4 KiB arrives without its last byte.
#pragma once

#include "../unix.hpp"

namespace {

struct loses_last_byte : unix_transport {
  using unix_transport::unix_transport;
  rg_status send(const rg_transfer& t) {
    rg_transfer less = t;
    if (less.bytes > 4096 && less.buffer.type == RG_U8) --less.bytes;
    return unix_transport::send(less);
  }
};

} // namespace

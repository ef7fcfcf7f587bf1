// SPDX-License-Identifier: Apache-2.0
//
// Defect: a send from an address that is no multiple of 4 fails.
#pragma once

#include "../unix.hpp"

namespace {

struct wants_alignment : unix_transport {
  using unix_transport::unix_transport;
  rg_status send(const rg_transfer& t) {
    if (reinterpret_cast<std::uintptr_t>(t.address) % 4) throw rg::error(RG_E_OPERATION, "an address of no float");
    return unix_transport::send(t);
  }
};

} // namespace

// SPDX-License-Identifier: Apache-2.0
//
// Defect: poll() fails if it is asked to spin.
#pragma once

#include "../unix.hpp"

#include <span>

namespace {

struct cannot_spin : unix_transport {
  using unix_transport::unix_transport;
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    if (spin_ns) throw rg::error(RG_E_OPERATION, "this one only sleeps");
    return unix_transport::poll(timeout_ns, spin_ns, out);
  }
};

} // namespace

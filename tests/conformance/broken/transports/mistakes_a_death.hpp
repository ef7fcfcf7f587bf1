// SPDX-License-Identifier: Apache-2.0
//
// Defect: reports a peer's death as RG_E_OPERATION.
#pragma once

#include "../unix.hpp"

#include <span>

namespace {

struct mistakes_a_death : unix_transport {
  using unix_transport::unix_transport;
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    const std::uint32_t count = unix_transport::poll(timeout_ns, spin_ns, out);
    for (rg_completion& c : out.first(count))
      if (c.status == RG_E_PEER) c.status = RG_E_OPERATION;
    return count;
  }
};

} // namespace

// SPDX-License-Identifier: Apache-2.0
//
// Defect: poll() uses a core all the time that it waits.
#pragma once

#include "../unix.hpp"

#include <span>

namespace {

struct spins : unix_transport {
  using unix_transport::unix_transport;
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t, std::span<rg_completion> out) {
    return unix_transport::poll(timeout_ns, timeout_ns, out);
  }
};

} // namespace

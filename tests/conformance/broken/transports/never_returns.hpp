// SPDX-License-Identifier: Apache-2.0
//
// Defect: a poll() that may wait never returns if no operation completes.
#pragma once

#include "../unix.hpp"

#include <span>

#include <unistd.h>

namespace {

struct never_returns : unix_transport {
  using unix_transport::unix_transport;
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    if (timeout_ns)
      for (;;) pause();
    return unix_transport::poll(timeout_ns, spin_ns, out);
  }
};

} // namespace

// SPDX-License-Identifier: Apache-2.0
//
// Defect: wake() makes poll() report a completion of no operation.
#pragma once

#include "../unix.hpp"

#include <atomic>
#include <span>

namespace {

struct invents_a_completion : unix_transport {
  using unix_transport::unix_transport;
  void wake() noexcept {
    woken_.store(true);
    unix_transport::wake();
  }
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    const std::uint32_t count = unix_transport::poll(timeout_ns, spin_ns, out);
    if (count || !woken_.exchange(false)) return count;
    out[0] = {.cookie = 0, .status = RG_OK, .bytes = 0};
    return 1;
  }
  std::atomic<bool> woken_{false};
};

} // namespace

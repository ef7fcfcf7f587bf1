// SPDX-License-Identifier: Apache-2.0
//
// Defect: completes a cancelled operation, but leaves it posted, so that a message completes it again.
#pragma once

#include "../unix.hpp"

#include <span>
#include <vector>

namespace {

struct cancels_twice : unix_transport {
  using unix_transport::unix_transport;
  void cancel_operation(std::uint64_t cookie) { cancelled_.push_back(cookie); }
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    if (cancelled_.empty()) return unix_transport::poll(timeout_ns, spin_ns, out);
    out[0] = {.cookie = cancelled_.back(), .status = RG_E_CANCELLED, .bytes = 0};
    cancelled_.pop_back();
    return 1;
  }
  std::vector<std::uint64_t> cancelled_;
};

} // namespace

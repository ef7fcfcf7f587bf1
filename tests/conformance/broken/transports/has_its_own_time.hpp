// SPDX-License-Identifier: Apache-2.0
//
// Defect: its completions have time stamps of another clock.
#pragma once

#include "../unix.hpp"

#include <ctime>
#include <span>

namespace {

struct has_its_own_time : unix_transport {
  using unix_transport::unix_transport;
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    const std::uint32_t count = unix_transport::poll(timeout_ns, spin_ns, out);
    for (rg_completion& c : out.first(count))
      c.time_ns = static_cast<std::uint64_t>(std::time(nullptr)) * 1'000'000'000;
    return count;
  }
};

} // namespace

// SPDX-License-Identifier: Apache-2.0
//
// Defect: receives nothing from a peer while it sends to it.
#pragma once

#include "../unix.hpp"

#include <set>
#include <span>

namespace {

struct one_way_at_a_time : unix_transport {
  using unix_transport::unix_transport;
  rg_status send(const rg_transfer& t) {
    sends_.insert(t.cookie);
    return unix_transport::send(t);
  }
  rg_status recv(const rg_transfer& t) {
    if (!sends_.empty()) throw rg::error(RG_E_OPERATION, "a message is on its way out");
    return unix_transport::recv(t);
  }
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    const std::uint32_t count = unix_transport::poll(timeout_ns, spin_ns, out);
    for (const rg_completion& c : out.first(count)) sends_.erase(c.cookie);
    return count;
  }
  std::set<std::uint64_t> sends_;
};

} // namespace

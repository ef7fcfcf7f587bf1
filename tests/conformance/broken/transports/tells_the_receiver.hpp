// SPDX-License-Identifier: Apache-2.0
//
// Correct: the send of a message that is too long succeeds, as with tag matching.
#pragma once

#include "../unix.hpp"

#include <set>
#include <span>

namespace {

struct tells_the_receiver : unix_transport {
  using unix_transport::unix_transport;
  rg_transport_caps caps() const {
    rg_transport_caps c = unix_transport::caps();
    c.flags &= ~static_cast<std::uint32_t>(RG_CAP_LONG_FAILS_SENDER);
    return c;
  }
  rg_status send(const rg_transfer& t) {
    sends_.insert(t.cookie);
    return unix_transport::send(t);
  }
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    const std::uint32_t count = unix_transport::poll(timeout_ns, spin_ns, out);
    for (rg_completion& c : out.first(count))
      if (sends_.erase(c.cookie) && c.status == RG_E_OPERATION) c.status = RG_OK;
    return count;
  }
  std::set<std::uint64_t> sends_;
};

} // namespace

// SPDX-License-Identifier: Apache-2.0
//
// Defect: adds in order of arrival, not of posting.
#pragma once

#include "../unix.hpp"

#include <cstring>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace {

struct adds_on_arrival : unix_transport {
  using unix_transport::unix_transport;
  rg_transport_caps caps() const {
    rg_transport_caps c = unix_transport::caps();
    c.flags |= RG_CAP_ADD | RG_CAP_ORDERED_RECEIVES;
    return c;
  }
  rg_status recv(const rg_transfer& t) {
    if (!(t.flags & RG_TRANSFER_ADD)) return unix_transport::recv(t);
    auto& [target, came] = adding_[t.cookie];
    target = static_cast<std::byte*>(t.address);
    came.resize(t.bytes);
    rg_transfer aside = t;
    aside.address = came.data();
    return unix_transport::recv(aside);
  }
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    const std::uint32_t count = unix_transport::poll(timeout_ns, spin_ns, out);
    for (const rg_completion& c : out.first(count)) {
      const auto at = adding_.find(c.cookie);
      if (at == adding_.end()) continue;
      const auto& [target, came] = at->second;
      for (std::uint64_t i = 0; i + sizeof(float) <= c.bytes; i += sizeof(float)) {
        float sum, term;
        std::memcpy(&sum, target + i, sizeof sum);
        std::memcpy(&term, came.data() + i, sizeof term);
        sum += term;
        std::memcpy(target + i, &sum, sizeof sum);
      }
      adding_.erase(at);
    }
    return count;
  }
  std::map<std::uint64_t, std::pair<std::byte*, std::vector<std::byte>>> adding_; // by cookie
};

} // namespace

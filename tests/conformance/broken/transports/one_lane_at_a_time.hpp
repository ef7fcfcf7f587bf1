// SPDX-License-Identifier: Apache-2.0
//
// Defect: a lane waits while another one has something to send.
#pragma once

#include "../unix.hpp"

#include <map>
#include <span>

namespace {

struct one_lane_at_a_time : unix_transport {
  using unix_transport::unix_transport;
  rg_status send(const rg_transfer& t) {
    for (const auto& [cookie, lane] : sends_)
      if (lane != t.lane) throw rg::error(RG_E_OPERATION, "lane " + std::to_string(lane) + " is not done yet");
    sends_[t.cookie] = t.lane;
    return unix_transport::send(t);
  }
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    const std::uint32_t count = unix_transport::poll(timeout_ns, spin_ns, out);
    for (const rg_completion& c : out.first(count)) sends_.erase(c.cookie);
    return count;
  }
  std::map<std::uint64_t, std::uint32_t> sends_; // lanes by cookie
};

} // namespace

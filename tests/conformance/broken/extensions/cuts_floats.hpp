// SPDX-License-Identifier: Apache-2.0
//
// Defect: truncates floats for the wire type instead of rounding.
#pragma once

#include "../unix.hpp"

#include <map>
#include <span>
#include <vector>

namespace {

struct cuts_floats : unix_transport {
  using unix_transport::unix_transport;
  rg_transport_caps caps() const {
    rg_transport_caps c = unix_transport::caps();
    c.flags |= RG_CAP_CONVERT;
    return c;
  }
  rg_status send(const rg_transfer& t) {
    if (!t.wire) return unix_transport::send(t);
    auto& half = halves_[t.cookie];
    half.resize(t.buffer.count);
    const auto* x = static_cast<const std::uint32_t*>(t.address);
    for (std::size_t i = 0; i < half.size(); ++i) half[i] = static_cast<std::uint16_t>(x[i] >> 16);
    return unix_transport::send(as_halves(t, half));
  }
  rg_status recv(const rg_transfer& t) {
    if (!t.wire) return unix_transport::recv(t);
    auto& half = halves_[t.cookie];
    half.resize(t.buffer.count);
    targets_[t.cookie] = static_cast<std::uint32_t*>(t.address);
    return unix_transport::recv(as_halves(t, half));
  }
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    const std::uint32_t count = unix_transport::poll(timeout_ns, spin_ns, out);
    for (rg_completion& c : out.first(count)) {
      const auto at = targets_.find(c.cookie);
      if (at == targets_.end()) continue;
      const auto& half = halves_[c.cookie];
      for (std::size_t i = 0; i < c.bytes / 2; ++i) at->second[i] = static_cast<std::uint32_t>(half[i]) << 16;
      c.bytes *= 2;
    }
    return count;
  }
  static rg_transfer as_halves(rg_transfer t, std::vector<std::uint16_t>& half) {
    t.address = half.data();
    t.buffer.type = RG_BF16;
    t.bytes = half.size() * sizeof(std::uint16_t);
    return t;
  }
  std::map<std::uint64_t, std::vector<std::uint16_t>> halves_; // by cookie
  std::map<std::uint64_t, std::uint32_t*> targets_;
};

} // namespace

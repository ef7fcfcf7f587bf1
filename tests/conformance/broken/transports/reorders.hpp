// SPDX-License-Identifier: Apache-2.0
//
// Defect: of two messages in a row, the second is sent first.
#pragma once

#include "../unix.hpp"

#include <map>
#include <optional>
#include <span>
#include <utility>

namespace {

struct reorders : unix_transport {
  using unix_transport::unix_transport;
  rg_status send(const rg_transfer& t) {
    auto& held = held_[{t.peer, t.lane}];
    if (!held) {
      held = t;
      return RG_OK;
    }
    unix_transport::send(t);
    unix_transport::send(*held);
    held.reset();
    return RG_OK;
  }
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    for (auto& [where, held] : held_) {
      if (held) unix_transport::send(*held);
      held.reset();
    }
    return unix_transport::poll(timeout_ns, spin_ns, out);
  }
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::optional<rg_transfer>> held_;
};

} // namespace

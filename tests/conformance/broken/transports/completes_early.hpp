// SPDX-License-Identifier: Apache-2.0
//
// Defect: a send completes before its bytes were read.
#pragma once

#include "../unix.hpp"

#include <deque>
#include <set>
#include <span>

namespace {

struct completes_early : unix_transport {
  using unix_transport::unix_transport;
  rg_status send(const rg_transfer& t) {
    early_.push_back({.cookie = t.cookie, .status = RG_OK, .bytes = t.buffer.count});
    said_.insert(t.cookie);
    return unix_transport::send(t);
  }
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    std::uint32_t count = 0;
    for (; count < out.size() && !early_.empty(); early_.pop_front()) out[count++] = early_.front();
    if (count) return count;
    const std::uint32_t ended = unix_transport::poll(timeout_ns, spin_ns, out);
    for (std::uint32_t i = 0; i < ended; ++i)
      if (!said_.erase(out[i].cookie)) out[count++] = out[i];
    return count;
  }
  std::deque<rg_completion> early_;
  std::set<std::uint64_t> said_;
};

} // namespace

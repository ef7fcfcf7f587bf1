// SPDX-License-Identifier: Apache-2.0
//
// Defect: copies are applied after later receives that add.
#pragma once

#include "adds_on_arrival.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <span>
#include <vector>

namespace {

struct copies_last : adds_on_arrival {
  using adds_on_arrival::adds_on_arrival;
  rg_status recv(const rg_transfer& t) {
    if (t.flags & RG_TRANSFER_ADD) return adds_on_arrival::recv(t);
    copy& c = copies_[t.cookie];
    c.target = static_cast<std::byte*>(t.address);
    c.came.resize(t.bytes);
    rg_transfer aside = t;
    aside.address = c.came.data();
    return unix_transport::recv(aside);
  }
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    std::array<rg_completion, 64> got;
    const std::uint32_t came = adds_on_arrival::poll(timeout_ns, spin_ns, got);
    std::uint32_t count = 0;
    for (const rg_completion& c : std::span(got).first(came)) {
      if (copies_.contains(c.cookie))
        held_.push_back(c);
      else
        out[count++] = c;
    }
    for (; adding_.empty() && !held_.empty() && count < out.size(); held_.pop_front()) {
      const rg_completion& c = out[count++] = held_.front();
      const auto at = copies_.find(c.cookie);
      std::copy_n(at->second.came.begin(), c.bytes, at->second.target);
      copies_.erase(at);
    }
    return count;
  }
  struct copy {
    std::byte* target;
    std::vector<std::byte> came;
  };
  std::map<std::uint64_t, copy> copies_; // by cookie
  std::deque<rg_completion> held_;
};

} // namespace

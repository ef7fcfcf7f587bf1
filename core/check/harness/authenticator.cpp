// SPDX-License-Identifier: Apache-2.0
#include "check/harness/authenticator.hpp"

#include "control/crypto.hpp"

#include <algorithm>
#include <utility>

#include <regatta/plugin.hpp>

namespace regatta::conformance {

authenticator::authenticator(mac_plan plan) : plan_(std::move(plan)), table_(rg::make_versioned<rg_authenticate>()) {
  table_.context = this;
  table_.mac = [](void* context, const void* data, std::uint64_t bytes, std::uint8_t out[32]) -> rg_status {
    auto& self = *static_cast<authenticator*>(context);
    const auto* first = static_cast<const std::uint8_t*>(data);
    const digest d = hmac_sha256(bytes_of(self.plan_.secret.c_str()), {{first, bytes}});
    std::copy(d.begin(), d.end(), out);
    const std::lock_guard lock(self.mutex_);
    if (self.calls_.size() >= self.plan_.right_calls) out[0] ^= 1;
    self.calls_.emplace_back(first, first + bytes);
    return RG_OK;
  };
}

std::vector<std::string> authenticator::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

} // namespace regatta::conformance

// SPDX-License-Identifier: Apache-2.0
//
// Mistake: of two equal notifications in a row only one is reported. Caught by test `notifications`.
#include "shared.hpp"

namespace {

struct merges_notifications : shm_transport {
  using shm_transport::shm_transport;
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    const std::uint32_t count = shm_transport::poll(timeout_ns, spin_ns, out);
    std::uint32_t kept = 0;
    for (const rg_completion& c : out.first(count)) {
      if (c.status == RG_NOTIFIED && std::exchange(last_, c.cookie) == c.cookie) continue;
      out[kept++] = c;
    }
    return kept;
  }

private:
  std::uint64_t last_ = 0;
};

} // namespace

RG_PLUGIN("merges_notifications", "1.0",
          rg::transport<merges_notifications>("merges_notifications", "broken: loses equal notifications"))

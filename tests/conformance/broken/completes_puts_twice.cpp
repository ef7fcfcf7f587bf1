// SPDX-License-Identifier: Apache-2.0
//
// Mistake: a put completes twice. Caught by tests `put-get` and `notifications`.
#include "shared.hpp"

#include <set>

namespace {

struct completes_puts_twice : shm_transport {
  using shm_transport::shm_transport;
  rg_status put(const rg_one_sided_transfer& t) {
    const rg_status s = shm_transport::put(t);
    puts_.insert(t.cookie);
    return s;
  }
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    std::uint32_t count = shm_transport::poll(timeout_ns, spin_ns, out.first(out.size() / 2));
    for (std::uint32_t i = 0, first = count; i < first; ++i)
      if (out[i].status == RG_OK && puts_.erase(out[i].cookie)) out[count++] = out[i];
    return count;
  }

private:
  std::set<std::uint64_t> puts_; // cookies
};

} // namespace

RG_PLUGIN("completes_puts_twice", "1.0",
          rg::transport<completes_puts_twice>("completes_puts_twice", "broken: a put completes twice"))

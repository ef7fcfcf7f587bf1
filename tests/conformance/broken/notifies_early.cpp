// SPDX-License-Identifier: Apache-2.0
//
// Mistake: the notification of a put arrives before its bytes. Caught by test `notifications`.
#include "shared.hpp"

namespace {

struct notifies_early : shm_transport {
  using shm_transport::shm_transport;
  // The length and the notification go first, in two puts without bytes; the bytes follow the next poll().
  rg_status put(const rg_one_sided_transfer& t) {
    if (t.notification == 0) return shm_transport::put(t);
    rg_one_sided_transfer early = t;
    early.bytes = 0;
    early.cookie = own;
    early.notification = t.bytes + 1;
    shm_transport::put(early);
    early.notification = t.notification;
    shm_transport::put(early);
    late& l = late_.emplace_back();
    l.of = t;
    l.of.notification = 0;
    std::memcpy(l.key.data(), t.key, key_bytes);
    return RG_OK;
  }
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    const std::uint32_t count = shm_transport::poll(timeout_ns, spin_ns, out);
    std::uint32_t kept = 0;
    for (rg_completion c : out.first(count)) {
      if (c.status != RG_NOTIFIED) {
        if (c.cookie != own) out[kept++] = c;
      } else if (length_ == 0) {
        length_ = c.cookie;
      } else {
        c.bytes = std::exchange(length_, 0) - 1;
        out[kept++] = c;
      }
    }
    for (late& l : late_) {
      l.of.key = l.key.data();
      shm_transport::put(l.of);
    }
    late_.clear();
    return kept;
  }

private:
  static constexpr std::uint64_t own = UINT64_MAX; // cookie of the puts without bytes
  struct late {
    rg_one_sided_transfer of;
    std::array<std::byte, key_bytes> key;
  };
  std::vector<late> late_;
  std::uint64_t length_ = 0; // of the next put, and 1; 0: not known
};

} // namespace

RG_PLUGIN("notifies_early", "1.0", rg::transport<notifies_early>("notifies_early", "broken: notifies before the data"))

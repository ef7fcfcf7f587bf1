// SPDX-License-Identifier: Apache-2.0
//
// Mistake: a second get of the same range returns the bytes of the first. Caught by test `get-after-put`.
#include "shared.hpp"

#include <tuple>

namespace {

struct gets_stale : shm_transport {
  using shm_transport::shm_transport;
  rg_status get(const rg_one_sided_transfer& t) {
    const rg_status s = shm_transport::get(t);
    pending_[t.cookie] = {static_cast<std::byte*>(t.address),
                          {{static_cast<const char*>(t.key), key_bytes}, t.offset, t.bytes}};
    return s;
  }
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    const std::uint32_t count = shm_transport::poll(timeout_ns, spin_ns, out);
    for (const rg_completion& c : out.first(count)) {
      const auto at = c.status == RG_OK ? pending_.find(c.cookie) : pending_.end();
      if (at == pending_.end()) continue;
      const auto& [target, which] = at->second;
      const auto [known, is_new] = cache_.try_emplace(which, target, target + std::get<2>(which));
      if (!is_new) std::copy(known->second.begin(), known->second.end(), target);
      pending_.erase(at);
    }
    return count;
  }

private:
  using range = std::tuple<std::string, std::uint64_t, std::uint64_t>; // key, offset, bytes
  std::map<std::uint64_t, std::pair<std::byte*, range>> pending_;      // by cookie
  std::map<range, std::vector<std::byte>> cache_;
};

} // namespace

RG_PLUGIN("gets_stale", "1.0", rg::transport<gets_stale>("gets_stale", "broken: a get returns old bytes"))

// SPDX-License-Identifier: Apache-2.0
//
// Mistake: a put or get that the peer refuses completes with RG_OK. Caught by test `one-sided-refusals`.
#include "shared.hpp"

namespace {

struct takes_any_key : shm_transport {
  using shm_transport::shm_transport;
  rg_status put(const rg_one_sided_transfer& t) {
    return ignoring_errors(t, [&] { return shm_transport::put(t); });
  }
  rg_status get(const rg_one_sided_transfer& t) {
    return ignoring_errors(t, [&] { return shm_transport::get(t); });
  }
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    std::uint32_t count = 0;
    for (; count < out.size() && !done_.empty(); done_.pop_back()) out[count++] = {.cookie = done_.back()};
    return count ? count : shm_transport::poll(timeout_ns, spin_ns, out);
  }

private:
  template <class F> rg_status ignoring_errors(const rg_one_sided_transfer& t, F&& begin) {
    try {
      return begin();
    } catch (const rg::error&) {
      done_.push_back(t.cookie);
      return RG_OK;
    }
  }
  std::vector<std::uint64_t> done_;
};

} // namespace

RG_PLUGIN("takes_any_key", "1.0", rg::transport<takes_any_key>("takes_any_key", "broken: ignores a refusal"))

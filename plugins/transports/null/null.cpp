// SPDX-License-Identifier: Apache-2.0
//
// A transport that connects no ranks, for runs without communication. It also shows the cost of the engine's loop
// alone.
#include <regatta/transport.hpp>

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace {

class null_transport {
public:
  null_transport(const rg_host*, const rg::parameters_t<null_transport>&) {}

  rg_transport_caps caps() const {
    return {.flags = RG_CAP_NONE | RG_CAP_SLEEP, .memory = RG_MEMORY_HOST | RG_MEMORY_DEVICE, .p2p = RG_P2P_NONE};
  }
  rg_blob listen(const rg_world& world) {
    if (world.peer_count > 0)
      throw rg::error(RG_E_CONFIG,
                      "transport null connects no ranks: expected a strategy that sends nothing, got one that does: "
                      "choose another transport, such as \"shm\" or \"tcp\"");
    return {};
  }
  void connect(std::span<const rg_blob>, std::uint64_t) {}
  rg_status send(const rg_transfer&) { throw rg::error(RG_E_OPERATION, "transport null has no peers to send to"); }
  rg_status recv(const rg_transfer&) { throw rg::error(RG_E_OPERATION, "transport null has no peers to receive from"); }
  // Nothing ever completes, so spinning is useless.
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t, std::span<rg_completion>) {
    std::unique_lock lock(mutex_);
    auto is_woken = [&] { return woken_; };
    if (timeout_ns > INT64_MAX / 2) // longer than the clock can represent
      wake_up_.wait(lock, is_woken);
    else if (timeout_ns > 0)
      wake_up_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), is_woken);
    woken_ = false;
    return 0;
  }
  void wake() noexcept {
    std::lock_guard lock(mutex_);
    woken_ = true;
    wake_up_.notify_one();
  }
  void cancel(std::uint32_t) {}
  void close(std::uint64_t) {}
  rg_counters counters() const { return {}; }

private:
  std::mutex mutex_;
  std::condition_variable wake_up_;
  bool woken_ = false;
};

} // namespace

RG_PLUGIN("null", "0.1.0", rg::transport<null_transport>("null", "connects no ranks: for runs without communication"))

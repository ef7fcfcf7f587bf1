// SPDX-License-Identifier: Apache-2.0
//
// Transports with a defect in connecting, ending, or running with one rank.
#include "unix.hpp"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <regatta/ext/authenticate.h>

namespace {

// Defect: authenticates with a constant instead of the run's secret.
struct own_secret {
  explicit own_secret(const rg_host* real) : host(*real) {
    host.extension = [](void*, const char* id) -> const void* {
      return std::strcmp(id, RG_EXT_AUTHENTICATE) == 0 ? &known_to_all : nullptr;
    };
  }
  static rg_status mac(void*, const void*, std::uint64_t, std::uint8_t out[32]) {
    std::fill_n(out, 32, std::uint8_t{1});
    return RG_OK;
  }
  static constexpr rg_authenticate known_to_all = {
      .struct_size = sizeof(rg_authenticate), .context = nullptr, .mac = &mac};
  rg_host host;
};
struct trusts_everybody : private own_secret, unix_transport {
  trusts_everybody(const rg_host* real, const rg::parameters_t<unix_transport>& p)
      : own_secret(real), unix_transport(&host, p) {}
};

// Defect: connect() reports success even if it failed.
struct never_misses_anybody : unix_transport {
  using unix_transport::unix_transport;
  void connect(std::span<const rg_blob> blobs, std::uint64_t timeout_ns) {
    try {
      unix_transport::connect(blobs, timeout_ns);
    } catch (const rg::error&) {
    }
  }
};

// Defect: connect() fails at its timeout, with a text.
struct connects_in_vain : unix_transport {
  using unix_transport::unix_transport;
  static void connect(std::span<const rg_blob>, std::uint64_t timeout_ns) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(timeout_ns));
    throw rg::error(RG_E_PEER, "the peers do not answer");
  }
};

struct dies_unconnected : unix_transport {
  using unix_transport::unix_transport;
  ~dies_unconnected() {
    if (listens_ && !connected_) std::abort();
  }
  rg_blob listen(const rg_world& world) {
    listens_ = true;
    return unix_transport::listen(world);
  }
  void connect(std::span<const rg_blob> blobs, std::uint64_t timeout_ns) {
    unix_transport::connect(blobs, timeout_ns);
    connected_ = true;
  }
  bool listens_ = false, connected_ = false;
};

// Connects no ranks. Defects: accepts peers, and reports a completion when it is woken.
struct nobody_and_anybody {
  nobody_and_anybody(const rg_host*, const rg::parameters_t<nobody_and_anybody>&) {}
  static rg_transport_caps caps() { return {.flags = RG_CAP_NONE, .memory = RG_MEMORY_HOST, .p2p = RG_P2P_NONE}; }
  static rg_blob listen(const rg_world&) { return {}; }
  static void connect(std::span<const rg_blob>, std::uint64_t) {}
  static rg_status send(const rg_transfer&) { return RG_OK; }
  static rg_status recv(const rg_transfer&) { return RG_OK; }
  static std::uint32_t poll(std::uint64_t, std::uint64_t, std::span<rg_completion> out) {
    out[0] = {.cookie = 0, .status = RG_OK, .bytes = 0};
    return 1;
  }
  static void wake() noexcept {}
  static void cancel(std::uint32_t) {}
  static void close(std::uint64_t) {}
  static rg_counters counters() { return {}; }
};

// Defect: caps().memory is 0.
struct no_word_of_memory : unix_transport {
  using unix_transport::unix_transport;
  rg_transport_caps caps() const {
    rg_transport_caps c = unix_transport::caps();
    c.memory = 0;
    return c;
  }
};

// Correct; requires messages as long as their receives.
struct exact : unix_transport {
  using unix_transport::unix_transport;
  rg_transport_caps caps() const {
    rg_transport_caps c = unix_transport::caps();
    c.flags |= RG_CAP_EXACT_SIZE;
    return c;
  }
};

} // namespace

RG_PLUGIN("broken_connecting", "1.0",
          rg::transport<trusts_everybody>("trusts_everybody", "broken: does not ask for the run's secret"),
          rg::transport<never_misses_anybody>("never_misses_anybody", "broken: who cannot be reached is there"),
          rg::transport<connects_in_vain>("connects_in_vain", "broken: no rank ever connects"),
          rg::transport<dies_unconnected>("dies_unconnected", "broken: must be connected before it ends"),
          rg::transport<nobody_and_anybody>("nobody_and_anybody", "broken: takes what it cannot deliver"),
          rg::transport<exact>("exact", "nothing wrong: no message is shorter than its receive"),
          rg::transport<no_word_of_memory>("no_word_of_memory", "broken: caps().memory is 0"))

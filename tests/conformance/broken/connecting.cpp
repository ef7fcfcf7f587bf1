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

// The host as a transport sees it that computes its MACs by `changed`.
struct changed_host {
  using mac_function = rg_status(const rg_authenticate& real, const void* data, std::uint64_t bytes,
                                 std::uint8_t out[32]);
  changed_host(const rg_host* host, mac_function* changed)
      : real(host), mac(changed),
        real_macs(static_cast<const rg_authenticate*>(real->extension(real->context, RG_EXT_AUTHENTICATE))) {
    as_seen.context = this;
    as_seen.log = [](void* self, std::int32_t level, const char* text) { of(self).log(of(self).context, level, text); };
    as_seen.fail = [](void* self, rg_status s, const char* text) { return of(self).fail(of(self).context, s, text); };
    as_seen.extension = [](void* self, const char* id) -> const void* {
      if (std::strcmp(id, RG_EXT_AUTHENTICATE) == 0) return &static_cast<changed_host*>(self)->macs;
      return of(self).extension(of(self).context, id);
    };
  }
  static const rg_host& of(void* self) { return *static_cast<changed_host*>(self)->real; }

  const rg_host* real;
  mac_function* mac;
  const rg_authenticate* real_macs;
  rg_host as_seen = *real;
  rg_authenticate macs = {.struct_size = sizeof(rg_authenticate),
                          .context = this,
                          .mac = [](void* self, const void* data, std::uint64_t bytes, std::uint8_t out[32]) {
                            const auto& me = *static_cast<changed_host*>(self);
                            return me.mac(*me.real_macs, data, bytes, out);
                          }};
};

// Whether the data of this MAC say that the rank that listens proves itself; see meeting::prove().
bool is_of_the_listener(const void* data) {
  std::uint32_t from, to;
  std::memcpy(&from, static_cast<const char*>(data) + 16, sizeof from);
  std::memcpy(&to, static_cast<const char*>(data) + 20, sizeof to);
  return from < to;
}

// Defect: any rank may listen, because its proof is a constant.
struct trusts_the_listener : private changed_host, unix_transport {
  static rg_status one_way(const rg_authenticate& host, const void* data, std::uint64_t bytes, std::uint8_t out[32]) {
    std::fill_n(out, 32, std::uint8_t{0});
    return is_of_the_listener(data) ? rg_status{RG_OK} : host.mac(host.context, data, bytes, out);
  }
  trusts_the_listener(const rg_host* host, const rg::parameters_t<unix_transport>& p)
      : changed_host(host, &one_way), unix_transport(&as_seen, p) {}
};

// Defect: the same, but each rank does compute a MAC, and then ignores it.
struct ignores_a_proof : private changed_host, unix_transport {
  static rg_status half(const rg_authenticate& host, const void* data, std::uint64_t bytes, std::uint8_t out[32]) {
    const rg_status s = host.mac(host.context, data, bytes, out);
    if (is_of_the_listener(data)) std::fill_n(out, 32, std::uint8_t{0});
    return s;
  }
  ignores_a_proof(const rg_host* host, const rg::parameters_t<unix_transport>& p)
      : changed_host(host, &half), unix_transport(&as_seen, p) {}
};

// Defect: the proof is the same in every run, so that it can be recorded and repeated.
struct repeats_its_proof : private changed_host, unix_transport {
  static rg_status same(const rg_authenticate& host, const void*, std::uint64_t, std::uint8_t out[32]) {
    return host.mac(host.context, "a rank", 6, out);
  }
  repeats_its_proof(const rg_host* host, const rg::parameters_t<unix_transport>& p)
      : changed_host(host, &same), unix_transport(&as_seen, p) {}
};

// Defect: a failed connect() leaves a descriptor open.
struct keeps_rejected : unix_transport {
  using unix_transport::unix_transport;
  void connect(std::span<const rg_blob> blobs, std::uint64_t timeout_ns) {
    try {
      unix_transport::connect(blobs, timeout_ns);
    } catch (const rg::error&) {
      ::eventfd(0, EFD_CLOEXEC);
      throw;
    }
  }
};

// Defect: close() waits for its peers without a deadline.
struct waits_for_ever : unix_transport {
  using unix_transport::unix_transport;
  void close(std::uint64_t) { unix_transport::close(UINT64_MAX); }
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
          rg::transport<trusts_the_listener>("trusts_the_listener", "broken: only the connecting rank proves itself"),
          rg::transport<ignores_a_proof>("ignores_a_proof", "broken: computes a proof and ignores it"),
          rg::transport<repeats_its_proof>("repeats_its_proof", "broken: a proof without a challenge"),
          rg::transport<keeps_rejected>("keeps_rejected", "broken: a descriptor for each failed connect()"),
          rg::transport<waits_for_ever>("waits_for_ever", "broken: close() ignores its deadline"),
          rg::transport<never_misses_anybody>("never_misses_anybody", "broken: who cannot be reached is there"),
          rg::transport<connects_in_vain>("connects_in_vain", "broken: no rank ever connects"),
          rg::transport<dies_unconnected>("dies_unconnected", "broken: must be connected before it ends"),
          rg::transport<nobody_and_anybody>("nobody_and_anybody", "broken: takes what it cannot deliver"),
          rg::transport<exact>("exact", "nothing wrong: no message is shorter than its receive"),
          rg::transport<no_word_of_memory>("no_word_of_memory", "broken: caps().memory is 0"))

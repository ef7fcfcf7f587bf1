// SPDX-License-Identifier: Apache-2.0
//
// A transport that connects nothing. Its extension "test.exchange/1" is the host's regatta.exchange/1, and
// "test.early/1" the statuses that all_gather() returned in create(), caps() and listen(), and "test.world/1" the
// rg_world.
#include <regatta/transport.hpp>

#include <array>

#include <regatta/ext/exchange.h>

namespace {

struct exchanging {
  exchanging(const rg_host* host, const rg::parameters_t<exchanging>&)
      : table(static_cast<const rg_exchange*>(host->extension(host->context, RG_EXT_EXCHANGE))) {
    early[0] = try_alone(0);
  }
  rg_status try_alone(std::uint32_t rank) const {
    const rg_blob mine{"x", 1};
    rg_blob part{};
    return table->all_gather(table->context, &rank, 1, &mine, &part);
  }

  rg_transport_caps caps() {
    early[1] = try_alone(0);
    return {.memory = RG_MEMORY_HOST, .p2p = RG_P2P_INDEPENDENT};
  }
  rg_blob listen(const rg_world& w) {
    world = &w;
    early[2] = try_alone(w.rank);
    return {};
  }
  void connect(std::span<const rg_blob>, std::uint64_t) {}
  rg_status send(const rg_transfer&) { return RG_AGAIN; }
  rg_status recv(const rg_transfer&) { return RG_AGAIN; }
  std::uint32_t poll(std::uint64_t, std::uint64_t, std::span<rg_completion>) { return 0; }
  void wake() noexcept {}
  void cancel(std::uint32_t) {}
  void close(std::uint64_t) {}
  rg_counters counters() const { return {}; }
  const void* extension(std::string_view id) const {
    if (id == "test.world/1") return world;
    return id == "test.exchange/1" ? static_cast<const void*>(table) : id == "test.early/1" ? early.data() : nullptr;
  }

  const rg_exchange* table;
  const rg_world* world = nullptr;
  std::array<rg_status, 3> early{};
};

} // namespace

RG_PLUGIN("exchanging", "1.0", rg::transport<exchanging>("exchanging", "connects nothing"))

// SPDX-License-Identifier: Apache-2.0
//
// NCCL as a transport: its parameters, and the GPU of a rank, which the engine assigns. transport.cpp decides the order
// of operations, medium.cpp calls NCCL.
#include "transport.hpp"

#include <regatta/ext/device.h>

namespace {

class nccl_transport : public nccl::transport {
public:
  struct parameters {
    bool share = false;
  };
  static constexpr auto fields = rg::fields(
      rg::field("share", &parameters::share,
                "ranks may share a GPU: NCCL sees each rank on a host of its own, and uses sockets; for tests"));

  nccl_transport(const rg_host* host, const parameters& p)
      : transport(
            [host, share = p.share](std::uint32_t rank) {
              const auto* place =
                  host->extension
                      ? static_cast<const rg_arena_memory*>(host->extension(host->context, RG_EXT_ARENA_MEMORY))
                      : nullptr;
              const std::int32_t device = place ? rg::copy_versioned(*place).device : 0;
              return nccl::open_medium(device, share ? rank + 1 : 0);
            },
            [host](std::span<const std::uint32_t> members, std::vector<std::byte> mine) {
              return rg::exchange(host, members, mine).front();
            }) {}

  // Throws without a GPU, so that the case is skipped before anything starts.
  static rg_transport_caps caps() {
    nccl::require_device();
    return transport::caps();
  }
};

} // namespace

RG_PLUGIN("nccl", "0.1.0",
          rg::transport<nccl_transport>("nccl", "messages and collectives between NVIDIA GPUs, by NCCL"))

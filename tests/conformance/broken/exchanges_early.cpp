// SPDX-License-Identifier: Apache-2.0
//
// Mistake: regatta.exchange/1 is called within listen(), where other ranks may not listen yet. Caught by every test
// that connects ranks.
#include "unix.hpp"

#include <array>

namespace {

struct exchanges_early : unix_transport {
  exchanges_early(const rg_host* h, const rg::parameters_t<unix_transport>& p)
      : unix_transport(h, p), host_of_exchange(h) {}
  rg_blob listen(const rg_world& world) {
    const std::array members{world.rank};
    rg::exchange(host_of_exchange, members, {});
    return unix_transport::listen(world);
  }
  const rg_host* host_of_exchange;
};

} // namespace

RG_PLUGIN("exchanges_early", "1.0",
          rg::transport<exchanges_early>("exchanges_early", "broken: exchanges bytes before connect()"))

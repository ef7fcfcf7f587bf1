// SPDX-License-Identifier: Apache-2.0
//
// A transport that connects no ranks (RG_CAP_NONE) works for one rank, and rejects peers.
#include "check/harness/endpoint.hpp"

#include <thread>

namespace regatta::conformance {
namespace {

void need_unconnected(const subject& which) {
  if (!(caps_of(which).flags & RG_CAP_NONE)) throw skipped("it is for transports that connect no ranks (RG_CAP_NONE)");
}

void alone(const subject& which) {
  need_unconnected(which);
  endpoint e(which, 0, 1, 1);
  e.connect({e.listen()});
  require(e.poll(0) == 0, "poll() reports a completion although nothing was sent");
  e.wake();
  require(e.poll(UINT64_MAX) == 0, "poll() reports a completion although nothing was sent");
  std::thread waker([&] { e.wake(); });
  e.poll(UINT64_MAX);
  waker.join();
  e.close();
}

void no_peers(const subject& which) {
  need_unconnected(which);
  endpoint e(which, 0, 2, 1);
  rg_blob blob{};
  require(e.try_listen(blob) < 0,
          "listen() accepts a world of 2 ranks, but the transport connects none (RG_CAP_NONE); expected an error");
  require(!e.last_error().empty(), "listen() returns an error without a text; call rg_host.fail() first");
}

} // namespace

std::vector<test> unconnected_tests() {
  return {
      {"alone", "a single rank can poll, be woken and close", alone},
      {"no-peers", "listen() of a world with peers is rejected with a text", no_peers},
  };
}

} // namespace regatta::conformance

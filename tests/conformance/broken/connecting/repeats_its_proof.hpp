// SPDX-License-Identifier: Apache-2.0
//
// Defect: the proof is the same in every run, so that it can be recorded and repeated.
#pragma once

#include "changed_host.hpp"

namespace {

struct repeats_its_proof : private changed_host, unix_transport {
  static rg_status same(const rg_authenticate& host, const void*, std::uint64_t, std::uint8_t out[32]) {
    return host.mac(host.context, "a rank", 6, out);
  }
  repeats_its_proof(const rg_host* host, const rg::parameters_t<unix_transport>& p)
      : changed_host(host, &same), unix_transport(&as_seen, p) {}
};

} // namespace

// SPDX-License-Identifier: Apache-2.0
//
// Defect: an instance that listens and is destroyed without connect() ends the process.
#pragma once

#include "../unix.hpp"

#include <cstdlib>
#include <span>

namespace {

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

} // namespace

// SPDX-License-Identifier: Apache-2.0
//
// Defect: cancel() of one peer cancels the operations with all.
#pragma once

#include "../unix.hpp"

namespace {

struct cancels_everybody : unix_transport {
  using unix_transport::unix_transport;
  rg_blob listen(const rg_world& world) {
    ranks_ = world.size;
    return unix_transport::listen(world);
  }
  void cancel(std::uint32_t) {
    for (std::uint32_t peer = 0; peer < ranks_; ++peer) unix_transport::cancel(peer);
  }
  std::uint32_t ranks_ = 0;
};

} // namespace

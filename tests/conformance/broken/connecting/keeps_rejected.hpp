// SPDX-License-Identifier: Apache-2.0
//
// Defect: a failed connect() leaves a descriptor open.
#pragma once

#include "../unix.hpp"

#include <span>

#include <sys/eventfd.h>

namespace {

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

} // namespace

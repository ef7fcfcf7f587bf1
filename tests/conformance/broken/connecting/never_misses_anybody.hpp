// SPDX-License-Identifier: Apache-2.0
//
// Defect: connect() reports success even if it failed.
#pragma once

#include "../unix.hpp"

#include <span>

namespace {

struct never_misses_anybody : unix_transport {
  using unix_transport::unix_transport;
  void connect(std::span<const rg_blob> blobs, std::uint64_t timeout_ns) {
    try {
      unix_transport::connect(blobs, timeout_ns);
    } catch (const rg::error&) {
    }
  }
};

} // namespace

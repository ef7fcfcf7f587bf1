// SPDX-License-Identifier: Apache-2.0
//
// Defect: connect() fails at its timeout, with a text.
#pragma once

#include "../unix.hpp"

#include <chrono>
#include <span>
#include <thread>

namespace {

struct connects_in_vain : unix_transport {
  using unix_transport::unix_transport;
  static void connect(std::span<const rg_blob>, std::uint64_t timeout_ns) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(timeout_ns));
    throw rg::error(RG_E_PEER, "the peers do not answer");
  }
};

} // namespace

// SPDX-License-Identifier: Apache-2.0
//
// Defect: close() leaves the connections open until the instance is destroyed.
#pragma once

#include "../unix.hpp"

namespace {

struct closes_nothing : unix_transport {
  using unix_transport::unix_transport;
  void close(std::uint64_t) {}
};

} // namespace

// SPDX-License-Identifier: Apache-2.0
//
// Defect: close() waits for its peers without a deadline.
#pragma once

#include "../unix.hpp"

namespace {

struct waits_for_ever : unix_transport {
  using unix_transport::unix_transport;
  void close(std::uint64_t) { unix_transport::close(UINT64_MAX); }
};

} // namespace

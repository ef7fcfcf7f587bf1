// SPDX-License-Identifier: Apache-2.0
//
// Defect: cancel() ends the process.
#pragma once

#include "../unix.hpp"

#include <cstdlib>

namespace {

struct crashes_on_cancel : unix_transport {
  using unix_transport::unix_transport;
  void cancel(std::uint32_t) { std::abort(); }
};

} // namespace

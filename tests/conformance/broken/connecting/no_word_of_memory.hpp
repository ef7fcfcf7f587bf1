// SPDX-License-Identifier: Apache-2.0
//
// Defect: caps().memory is 0.
#pragma once

#include "../unix.hpp"

namespace {

struct no_word_of_memory : unix_transport {
  using unix_transport::unix_transport;
  rg_transport_caps caps() const {
    rg_transport_caps c = unix_transport::caps();
    c.memory = 0;
    return c;
  }
};

} // namespace

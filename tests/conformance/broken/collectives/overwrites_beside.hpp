// SPDX-License-Identifier: Apache-2.0
//
// Defect: writes a byte behind the buffer.
#pragma once

#include "../sends_all.hpp"

namespace {

struct overwrites_beside : sends_all {
  using sends_all::sends_all;
  void finish(call& c) override {
    sends_all::finish(c);
    if (c.of.target.count == 1000)
      static_cast<std::byte*>(c.of.target_address)[rg::bytes_of(c.of.target)] ^= std::byte{1};
  }
};

} // namespace

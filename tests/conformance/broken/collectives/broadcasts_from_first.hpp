// SPDX-License-Identifier: Apache-2.0
//
// Defect: a broadcast always sends the bytes of the first member; its root is ignored.
#pragma once

#include "../sends_all.hpp"

namespace {

struct broadcasts_from_first : sends_all {
  using sends_all::sends_all;
  std::size_t root(const call&) const override { return 0; }
};

} // namespace

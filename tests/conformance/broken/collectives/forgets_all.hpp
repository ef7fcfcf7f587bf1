// SPDX-License-Identifier: Apache-2.0
//
// Defect: collectives complete, and nothing was done.
#pragma once

#include "../sends_all.hpp"

namespace {

struct forgets_all : sends_all {
  using sends_all::sends_all;
  bool is_forgotten(std::size_t) const override { return true; }
};

} // namespace

// SPDX-License-Identifier: Apache-2.0
//
// Defect: with more than 32 pending collectives, some complete without being done.
#pragma once

#include "../sends_all.hpp"

namespace {

struct forgets_some : sends_all {
  using sends_all::sends_all;
  bool is_forgotten(std::size_t under_way) const override { return under_way > 32; }
};

} // namespace

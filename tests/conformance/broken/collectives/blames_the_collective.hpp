// SPDX-License-Identifier: Apache-2.0
//
// Defect: if a peer dies, the collective ends with RG_E_OPERATION in place of RG_E_PEER.
#pragma once

#include "../sends_all.hpp"

namespace {

struct blames_the_collective : sends_all {
  using sends_all::sends_all;
  rg_status status_of_failure(rg_status) const override { return RG_E_OPERATION; }
};

} // namespace

// SPDX-License-Identifier: Apache-2.0
//
// Defect: an all-gather omits the elements behind the last multiple of 16.
#pragma once

#include "../sends_all.hpp"

namespace {

struct gathers_lines : sends_all {
  using sends_all::sends_all;
  part share(const call& c, std::uint64_t place) const override {
    part p = sends_all::share(c, place);
    if (c.of.kind == RG_OP_ALL_GATHER) p.end -= (p.end - p.first) % 16;
    return p;
  }
};

} // namespace

// SPDX-License-Identifier: Apache-2.0
//
// Defect: the shards of a reduce-scatter do not begin at multiples of 16 elements.
#pragma once

#include "../sends_all.hpp"

namespace {

struct scatters_evenly : sends_all {
  using sends_all::sends_all;
  part share(const call& c, std::uint64_t place) const override {
    if (c.of.kind != RG_OP_REDUCE_SCATTER) return sends_all::share(c, place);
    const std::uint64_t count = c.of.source.count, n = c.members.size();
    return {count * place / n, count * (place + 1) / n};
  }
};

} // namespace

// SPDX-License-Identifier: Apache-2.0
//
// Defect: does not add the floats behind the last multiple of 16.
#pragma once

#include "adds_on_arrival.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <vector>

namespace {

struct adds_in_sixteens : adds_on_arrival {
  using adds_on_arrival::adds_on_arrival;
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    std::map<std::byte*, std::vector<std::byte>> kept;
    for (const auto& [cookie, sum] : adding_) {
      std::byte* const end = sum.first + sum.second.size();
      const std::size_t rest = sum.second.size() % 64;
      kept[end - rest].assign(end - rest, end);
    }
    const std::uint32_t count = adds_on_arrival::poll(timeout_ns, spin_ns, out);
    for (const auto& [at, bytes] : kept) std::copy(bytes.begin(), bytes.end(), at);
    return count;
  }
};

} // namespace

// SPDX-License-Identifier: Apache-2.0
//
// The time that a strategy's operations take under a virtual clock.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace regatta {

struct virtual_work {
  // Of each byte that an operation reads or writes. 10 GB/s is one core's part of a server's memory bandwidth.
  double ns_per_byte = 0.1;
  std::vector<std::pair<std::uint32_t, double>> of_kind; // the same for operations of a kind, RG_OP_*, that differ
  bool in_turn = false; // a rank's operations take turns, as on the thread of a real rank; else they overlap
  // Called when an operation begins that takes `ns` and ends at `end`, on the virtual clock. May be empty.
  std::function<void(std::uint64_t ns, std::uint64_t end)> begun;
  // Returns the ns of an operation.
  std::uint64_t of(std::uint32_t kind, std::uint64_t bytes) const {
    double each = ns_per_byte;
    for (const auto& [k, ns] : of_kind)
      if (k == kind) each = ns;
    return static_cast<std::uint64_t>(static_cast<double>(bytes) * each);
  }
};

} // namespace regatta

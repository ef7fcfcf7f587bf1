// SPDX-License-Identifier: Apache-2.0
//
// The time that a strategy's operations take under a virtual clock.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include <regatta/abi.h>

namespace regatta {

struct virtual_work {
  static constexpr std::uint32_t fp16_conversion = RG_OP_CONVERT | 1U << 31; // the kind of those to or from RG_F16
  // Of each byte that an operation reads or writes. 10 GB/s is one core's part of a server's memory bandwidth.
  double ns_per_byte = 0.1;
  std::map<std::uint32_t, double> of_kind; // the same for operations of a kind, RG_OP_* or that above, that differ
  bool in_turn = false; // a rank's operations take turns, as on the thread of a real rank; else they overlap
  // Begins an operation that takes `ns`, at `earliest` on the virtual clock or later. Returns when it ends. `works`: false
  // for a timer, which takes no core. May be empty: operations end at `earliest` + `ns`.
  std::function<std::uint64_t(std::uint64_t earliest, std::uint64_t ns, bool works)> begin;
  // Begins an operation, with `begin` if it is not empty. Returns when it ends.
  std::uint64_t end_of(std::uint64_t earliest, std::uint64_t ns, bool works = true) const {
    return begin ? begin(earliest, ns, works) : earliest + ns;
  }
  // Returns the ns of an operation.
  std::uint64_t of(std::uint32_t kind, std::uint64_t bytes) const {
    const auto at = of_kind.find(kind);
    return static_cast<std::uint64_t>(static_cast<double>(bytes) * (at == of_kind.end() ? ns_per_byte : at->second));
  }
};

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// The operations that `regatta comm` measures, as a strategy: what is measured is what a strategy gets from the engine.
// The arena is one tensor, as long as the largest message; step k does the operation once on its first counts[k]
// elements (the high half of the step's number is k).
#pragma once

#include "comm/plan.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <regatta/abi.h>

namespace regatta::comm {

// Its values: op, algorithm, counts.
const rg_strategy& pattern_strategy();

inline std::uint64_t step_of(std::size_t size, std::uint64_t iteration) {
  return (static_cast<std::uint64_t>(size) << 32) | (iteration & UINT32_MAX);
}

// How an operation can be done: "native" by the transport itself, the others over its messages. Empty: in one way.
std::vector<std::string> algorithms_of(const std::string& op);
bool has_native(const rg_collectives& c, const std::string& op);

// Whether rank `r` of `ranks` does anything in it.
bool takes_part(const std::string& op, std::uint32_t r, std::uint32_t ranks);

// Bytes that cross the busiest link of a rank, over the message's: what turns algorithm bandwidth into bus bandwidth.
//   allreduce      2 (n - 1) / n: the least that any algorithm can do (and so comparable between numbers of ranks)
//   reducescatter  (n - 1) / n, likewise; its size is that of the whole buffer, n shares
//   allgather      the same
//   broadcast      1: everybody but the root gets all of it
//   send           1
//   push_pull      2: there and back
double bus_factor(const std::string& op, std::uint32_t ranks);

// What is checked: before an iteration each rank fills its gradients so, and afterwards counts what is not as expected.
// Small whole numbers: their sums are exact in whatever order.
void fill(std::uint32_t rank, std::span<float> weights, std::span<float> gradients);
std::uint64_t count_wrong(const std::string& op, std::uint32_t rank, std::uint32_t ranks,
                          std::span<const float> weights, std::span<const float> gradients);

} // namespace regatta::comm

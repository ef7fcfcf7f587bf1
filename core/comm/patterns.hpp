// SPDX-License-Identifier: Apache-2.0
//
// The operations that `regatta comm` measures, written as a strategy: they run through the same engine as any strategy.
// The arena is one tensor of the size of the largest message. A step does the operation once on the first counts[k]
// elements; k is the high half of the step's number.
#pragma once

#include "comm/plan.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <regatta/abi.h>

namespace regatta::comm {

// Its parameters: op, algorithm, counts.
const rg_strategy& pattern_strategy();

inline std::uint64_t step_of(std::size_t size, std::uint64_t iteration) {
  return (static_cast<std::uint64_t>(size) << 32) | (iteration & UINT32_MAX);
}

// Returns the algorithms of an operation: "native" is the transport's own, others send messages. Empty: it has only
// one.
std::vector<std::string> algorithms_of(const std::string& op);
bool has_native(const rg_collectives& c, const std::string& op);

// Returns true if rank `r` of `ranks` sends or receives in this operation.
bool takes_part(const std::string& op, std::uint32_t r, std::uint32_t ranks);

// Returns the bytes that cross the busiest link of a rank, divided by the size of the message. Algorithm bandwidth times
// this factor is bus bandwidth.
//   allreduce      2 (n - 1) / n: the minimum of any algorithm, so that numbers of ranks can be compared
//   reducescatter  (n - 1) / n: the minimum too; the size is that of the whole buffer, n shards
//   allgather      (n - 1) / n, as reducescatter
//   broadcast      1: every rank except the root receives the whole buffer
//   send           1
//   push_pull      2: there and back
double bus_factor(const std::string& op, std::uint32_t ranks);

// The check of results. Before a checked iteration each rank calls fill(); afterwards count_wrong() returns the number
// of elements with a wrong value. Values are small integers, so that sums are exact in any order.
void fill(std::uint32_t rank, std::span<float> weights, std::span<float> gradients);
std::uint64_t count_wrong(const std::string& op, std::uint32_t rank, std::uint32_t ranks,
                          std::span<const float> weights, std::span<const float> gradients);

} // namespace regatta::comm

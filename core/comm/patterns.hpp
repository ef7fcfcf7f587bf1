// SPDX-License-Identifier: Apache-2.0
//
// The operations that `regatta comm` measures, written as a strategy: they run through the same engine as any strategy.
// The arena is one tensor of the size of the largest message. A step does the operation once on the first counts[k]
// elements; k is the upper 32 bits of the step's number (step_of).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <regatta/abi.h>
#include <regatta/ext/collectives.h>

namespace regatta::comm {

// Returns the strategy. Its parameters, in this order: op (a string: allreduce, reducescatter, allgather, alltoall,
// broadcast, send, push_pull or, see pair_code(), pair), algorithm (a string: one of algorithms_of(op), or empty if
// there is only one), and counts (integers: the sizes of the messages in fp32 elements, at least one).
const rg_strategy& pattern_strategy();

// Returns the number of a step that does the operation on counts[size]; `iteration` makes it unique.
inline std::uint64_t step_of(std::size_t size, std::uint64_t iteration) {
  return (static_cast<std::uint64_t>(size) << 32) | (iteration & UINT32_MAX);
}

// For the operation "pair" (counts of two sizes), which `regatta comm --matrix` uses: `size` of step_of(), for a step
// in which this rank and `peer` exchange one message. The rank that leads sends its first counts[large] gradients, and
// receives an answer of counts[0] elements in its weights; the other rank receives the message in its weights, and
// sends the answer from its gradients. Ranks outside the pair begin no step for it.
inline std::size_t pair_code(std::uint32_t peer, bool large, bool leads) {
  return static_cast<std::size_t>(peer) << 2 | (large ? 2U : 0U) | (leads ? 0U : 1U);
}

// Returns the algorithms of an operation: "native" is the transport's own collective, which not every transport has
// (has_native()); the others send messages. Empty: the operation has only one algorithm.
std::vector<std::string> algorithms_of(const std::string& op);
// Returns true if the instance `transport` has the collective `op`, one of allreduce, reducescatter, allgather,
// alltoall and broadcast.
bool has_native(const rg_collectives& c, void* transport, const std::string& op);

// Returns true if rank `r` of `ranks` sends or receives in this operation. Only the last of an odd number of ranks does
// not, in `send`, which ranks do in pairs.
bool takes_part(const std::string& op, std::uint32_t r, std::uint32_t ranks);

// Returns bus bandwidth divided by algorithm bandwidth: the bytes that a rank at least sends or receives, divided by
// the size of the message.
//   allreduce      2 (n - 1) / n: the minimum of any algorithm, so that numbers of ranks can be compared
//   reducescatter  (n - 1) / n: the minimum too; the size is that of the whole buffer, n shards
//   allgather      (n - 1) / n, as reducescatter
//   alltoall       (n - 1) / n: a rank keeps 1/n of its buffer and sends all other parts
//   broadcast      1: every rank except the root receives the whole buffer
//   send           1
//   push_pull      2: the buffer that a worker sends and the one that it receives are both counted, but not the bytes
//                  of its server, which moves more
double bus_factor(const std::string& op, std::uint32_t ranks);

// The check of results. Before a checked iteration each rank calls fill() on its first counts[k] weights and gradients;
// afterwards count_wrong() of the same elements returns how many of those that the operation had to set on this rank
// are wrong; 0 for a rank that takes no part. Values are small integers, so that sums are exact in any order.
void fill(std::uint32_t rank, std::span<float> weights, std::span<float> gradients);
std::uint64_t count_wrong(const std::string& op, std::uint32_t rank, std::uint32_t ranks,
                          std::span<const float> weights, std::span<const float> gradients);

} // namespace regatta::comm

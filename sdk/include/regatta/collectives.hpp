// SPDX-License-Identifier: Apache-2.0
//
// How collectives cut a buffer into chunks (rg_op_collective.counts), for transports and strategies.
#pragma once

#include <algorithm>
#include <cstdint>

#include <regatta/abi.h>

namespace rg {

// Elements [first, first + count) of a buffer.
struct chunk {
  std::uint64_t first, count;
  std::uint64_t end() const noexcept { return first + count; }
};

// Returns chunk `index`, from 0, of a buffer of `count` elements in `members` chunks. `counts`: the elements of each
// chunk, [members]; null: chunks that differ by at most 16 elements and begin at multiples of 16, a cache line of fp32,
// from the buffer's begin. If there are more chunks than cache lines, some are empty, chunk 0 among them.
inline chunk chunk_of(std::uint64_t count, const std::uint64_t* counts, std::uint64_t index,
                      std::uint64_t members) noexcept {
  if (!counts) {
    const std::uint64_t lines = (count + 15) / 16;
    const std::uint64_t from = std::min(count, lines * index / members * 16);
    return {from, std::min(count, lines * (index + 1) / members * 16) - from};
  }
  std::uint64_t from = 0;
  for (std::uint64_t k = 0; k < index; ++k) from += counts[k];
  return {from, counts[index]};
}

// Returns chunk `index`, from 0, of an ALL_TO_ALL without counts: chunks of equal size. Requires a `count` that is a
// multiple of `members`; otherwise the last count % members elements are in no chunk.
inline chunk equal_chunk(std::uint64_t count, std::uint64_t index, std::uint64_t members) noexcept {
  return {count / members * index, count / members};
}

// Whether a collective combines elements, so that it has a reduction.
constexpr bool reduces(std::uint32_t kind) noexcept {
  return kind == RG_OP_ALL_REDUCE || kind == RG_OP_REDUCE || kind == RG_OP_REDUCE_SCATTER;
}
// Whether a collective has a root.
constexpr bool has_root(std::uint32_t kind) noexcept {
  return kind == RG_OP_REDUCE || kind == RG_OP_BROADCAST || kind == RG_OP_GATHER || kind == RG_OP_SCATTER;
}

} // namespace rg

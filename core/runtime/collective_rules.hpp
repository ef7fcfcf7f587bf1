// SPDX-License-Identifier: Apache-2.0
//
// The rules that rg_op_collective (abi/operations.h) states for the buffers of a collective.
#pragma once

#include <cstdint>

#include <regatta/abi.h>

namespace regatta {

// A group of ranks, as one of its members sees it.
struct collective_group {
  std::uint32_t id;          // the transport's number
  std::uint32_t size, index; // number of members; this rank's index among them
};

// The buffers that a member uses in a collective; null: it uses none.
struct used_buffers {
  const rg_buffer *source, *target;
};
// Requires a valid root if the collective has one.
used_buffers buffers_of(const rg_op_collective& o, const collective_group& g);

// Returns what is wrong with the arguments of a collective, or null. Reads `counts`, but no buffer.
const char* error_in(const rg_op_collective& o, const collective_group& g);

} // namespace regatta

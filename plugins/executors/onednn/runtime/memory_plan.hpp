// SPDX-License-Identifier: Apache-2.0
//
// Memory of a program's activations, their gradients, the ops' slots and the scratch: one block, planned once. Slots
// that are not live at the same time may share bytes.
#pragma once

#include "runtime/program.hpp"

#include <cstdlib>

namespace onednn {

struct free_delete {
  void operator()(void* p) const { std::free(p); }
};
using aligned_bytes = std::unique_ptr<std::byte[], free_delete>;

// Returns zeroed memory, aligned to 64 bytes, or to 2 MiB from that size on, so that huge pages can back it. Throws
// std::bad_alloc.
aligned_bytes allocate_zeroed(std::size_t bytes);

// Assigns offsets to slots. First request slots with request(), then call allocate() once, then at_slot() and
// scratch(), then release(). A time is the index of an op in the forward pass (0 to ops - 1) or, since the backward
// pass runs the ops in reverse order, 2 * ops - 1 minus that index.
class memory_plan {
public:
  memory_plan(std::size_t ops, std::size_t batch) : ops_(ops), batch_(batch) {}

  std::size_t forward_time(std::size_t op) const { return op; }
  std::size_t backward_time(std::size_t op) const { return 2 * ops_ - 1 - op; }
  std::size_t batch() const { return batch_; }
  // Sets the current op, whose plan() is called next.
  void at(std::size_t op) { current_ = op; }

  // Requests a slot that is live from time `first` to `last`, both included. It gets an address by allocate().
  slot request(std::size_t bytes, std::size_t first, std::size_t last);
  // Requests a slot that the current op writes in the forward pass and reads in the backward pass.
  slot request_kept(std::size_t bytes) { return request(bytes, forward_time(current_), backward_time(current_)); }
  // Extends the slot's lifetime, at either end, so that it includes `time`.
  void extend(slot s, std::size_t time);

  // Gives every slot its offset and allocates the block, zeroed, with `extra` bytes of scratch behind the slots. Throws
  // std::bad_alloc.
  void allocate(std::size_t extra);
  // Returns the slot's address, aligned to 64 bytes; null for no_slot. Call it after allocate() and before release();
  // the address stays valid as long as the block.
  template <class T = float> T* at_slot(slot s) const {
    return s == no_slot ? nullptr : reinterpret_cast<T*>(block_.get() + slots_[s].offset);
  }
  // Address of the scratch; as at_slot().
  std::byte* scratch() const { return block_.get() + planned_; }
  // Size of the block, after allocate().
  std::size_t bytes() const { return planned_ + extra_; }
  // Hands the block over to the caller.
  aligned_bytes release() { return std::move(block_); }

private:
  struct slot_range {
    std::size_t bytes, first, last, offset;
  };
  std::size_t ops_, batch_, current_ = 0, planned_ = 0, extra_ = 0;
  std::vector<slot_range> slots_;
  aligned_bytes block_;
};

// Assigns memory to every value and gradient of the program except the batch's inputs, and scratch to its device: calls
// plan() and then attach() of every op. Requires that op::prepare() was called for all. Returns the block, which must
// live as long as the program runs, and sets `bytes` to its size. Throws std::bad_alloc.
aligned_bytes plan_memory(program& p, std::size_t& bytes);

} // namespace onednn

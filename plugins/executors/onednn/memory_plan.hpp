// SPDX-License-Identifier: Apache-2.0
//
// All memory of a program but weights: one block, planned once. What does not live at the same time shares bytes.
#pragma once

#include "program.hpp"

#include <cstdlib>

namespace onednn {

struct free_delete {
  void operator()(void* p) const { std::free(p); }
};
using aligned_bytes = std::unique_ptr<std::byte[], free_delete>;

// Zeroed, 64-byte aligned (2 MiB where it is large, so that huge pages can back it). Throws std::bad_alloc.
aligned_bytes allocate_zeroed(std::size_t bytes);

// Time runs from 0 over the forward pass of every op to 2 * ops over their backward passes.
class memory_plan {
public:
  memory_plan(std::size_t ops, std::size_t batch) : ops_(ops), batch_(batch) {}

  std::size_t forward_time(std::size_t op) const { return op; }
  std::size_t backward_time(std::size_t op) const { return 2 * ops_ - 1 - op; }
  std::size_t batch() const { return batch_; }
  // The op whose plan() is being called.
  void at(std::size_t op) { current_ = op; }

  // Bytes that live from `first` to `last`, both included.
  slot ask(std::size_t bytes, std::size_t first, std::size_t last);
  // Bytes that the current op writes forward and reads backward.
  slot ask_kept(std::size_t bytes) { return ask(bytes, forward_time(current_), backward_time(current_)); }
  // The slot lives at this time, too.
  void extend(slot s, std::size_t time);

  // Gives every slot its place and allocates the block with `extra` bytes of scratch behind it.
  void settle(std::size_t extra);
  template <class T = float> T* at_slot(slot s) const {
    return s == no_slot ? nullptr : reinterpret_cast<T*>(block_.get() + slots_[s].offset);
  }
  std::byte* scratch() const { return block_.get() + planned_; }
  std::size_t bytes() const { return planned_ + extra_; }
  aligned_bytes release() { return std::move(block_); }

private:
  struct piece {
    std::size_t bytes, first, last, offset;
  };
  std::size_t ops_, batch_, current_ = 0, planned_ = 0, extra_ = 0;
  std::vector<piece> slots_;
  aligned_bytes block_;
};

// Gives every value and gradient of the program its memory, and the device its scratch.
aligned_bytes plan_memory(program& p, std::size_t& bytes);

} // namespace onednn

// SPDX-License-Identifier: Apache-2.0
//
// The buckets of a rank's gradients, and how far the backward pass of the current step has come. A bucket is a
// contiguous part of the arena that is exchanged as soon as all of its gradients are there.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <regatta/abi.h>

namespace regatta {

// All functions are [loop] except where noted.
class gradient_buckets {
public:
  struct bucket {
    std::uint32_t index;
    rg_fence fence; // passes when the gradients are there; 0 without a device
  };

  // [main] Sets the end of each bucket in the arena, ascending. With `fences` the gradients are a device's. Call it
  // before the first step.
  void set(std::vector<std::uint64_t> ends, bool fences) {
    ends_ = std::move(ends);
    if (fences) fences_.resize(ends_.size());
  }
  // [any] Does not change after set().
  std::span<const std::uint64_t> ends() const { return ends_; }

  // No gradient is ready at the begin of a step.
  void begin_step() {
    next_ = waited_ = 0;
    ready_.store(0, std::memory_order_relaxed);
    fenced_ = 0;
    in_step_ = true;
  }
  // No bucket becomes ready until the next begin_step().
  void end_step() { in_step_ = false; }

  // [compute] Declares the gradients of elements [0, end) ready; on a device, once `fence` has passed. Lock-free.
  void gradients_ready(std::uint64_t end, rg_fence fence) noexcept {
    for (; fenced_ < fences_.size() && ends_[fenced_] <= end; ++fenced_) fences_[fenced_] = fence;
    ready_.store(end, std::memory_order_release);
  }
  // [any] Returns the `end` of the last gradients_ready() in this step; 0: there was none. Lock-free.
  std::uint64_t ready_to() const noexcept { return ready_.load(std::memory_order_relaxed); }

  // Returns the next bucket of this step that is ready, each once, in order; std::nullopt: none is.
  std::optional<bucket> next_ready() {
    if (!in_step_ || next_ == ends_.size() || ends_[next_] > ready_.load(std::memory_order_acquire))
      return std::nullopt;
    const std::uint32_t index = next_++;
    return bucket{index, fences_.empty() ? 0 : fences_[index]};
  }

  // Returns the fence for which work that reads elements up to and including `last` must wait. 0: an earlier call of
  // this step returned it, or next_ready() has not returned the bucket, so that the strategy does not read it yet.
  // Requires fences.
  rg_fence fence_to_wait_for(std::uint64_t last) {
    const auto index = static_cast<std::uint32_t>(std::ranges::upper_bound(ends_, last) - ends_.begin());
    if (index < waited_ || index >= next_) return 0;
    waited_ = index + 1;
    return fences_[index];
  }
  // Returns the fences of all buckets; empty without a device.
  std::span<const rg_fence> fences() const { return fences_; }

private:
  std::vector<std::uint64_t> ends_;
  std::vector<rg_fence> fences_; // [compute] writes them before ready_
  std::size_t fenced_ = 0;       // [compute] buckets of this step that have a fence
  std::uint32_t waited_ = 0;     // buckets of this step whose fences fence_to_wait_for() has returned
  std::uint32_t next_ = 0;
  bool in_step_ = false;
  std::atomic<std::uint64_t> ready_{0};
};

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// The engine's optimizer for ranges of the arena; rule.hpp has the formulas.
//
// t counts, from 1, how often an element was updated; skipped steps do not count. All state starts at 0. The result for
// an element depends neither on how ranges are split nor on the machine's instruction set. Only with clipping does the
// last bit of the norm (a sum of doubles) depend on the split.
//
// Weights, gradients and state lie in the memory of `unit`, the host or a device (memory/processor.hpp). On a device,
// work is enqueued in its stream, and nothing waits for it: gradients must stay unchanged until the device has executed
// the update.
//
// One thread at a time: [loop], or [main] before the first step.
#pragma once

#include "memory/arithmetic.hpp"
#include "memory/processor.hpp"
#include "optimizer/rule.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace regatta {

// A tensor's slice of the arena with its constants.
struct optimizer_slice {
  std::uint64_t first, count; // elements
  float decay, lr_scale;      // factors on optimizer.weight_decay and on the learning rate
};

class optimizer {
public:
  using norm = arithmetic::norm;

  // `workers` is the number of workers of the run, for lr_scaling. `slices` cover the arena: ascending, without gaps.
  // `unit` computes the updates and must outlive this object. Throws failure (usage) for an unsupported configuration.
  optimizer(const optimizer_config& config, std::int64_t workers, std::vector<optimizer_slice> slices, processor& unit);
  ~optimizer();
  optimizer(const optimizer&) = delete;
  optimizer& operator=(const optimizer&) = delete;

  // Returns whether updates wait for commit(), because optimizer.clip_norm needs every owner's part of the norm first.
  bool deferred() const noexcept { return rule_.clips(); }

  // Makes this rank the owner of elements [first, first + count) of the arena; does nothing if `count` is 0. weights[0]
  // is the weight of `first`; the array must outlive this object. Allocates the elements' state, zeroed and aligned to
  // 64 bytes. Throws failure (plugin) if the range leaves the arena or overlaps an owned one.
  void own(std::uint64_t first, std::uint64_t count, float* weights);

  // Updates elements [first, first + gradient.size()) with the learning rate of `step`; the range may span several
  // owned ranges. Throws failure (plugin) and changes nothing if some elements are not owned. If deferred(), only
  // computes the gradient's norm; the gradient must then remain unchanged until commit(), and `step` is ignored.
  // Allocates nothing once every split has occurred.
  void apply(std::uint64_t first, std::span<const float> gradient, std::uint64_t step);

  // Writes the norm of everything applied since the last commit() to out[0] (not_finite) and out[1] (sum_of_squares);
  // zeros if not deferred(). `out` is memory that `unit` writes (processor.hpp); a device does so later, in its stream.
  // The norm does not depend on the order of the calls of apply().
  void partial(double* out);

  // Requires deferred(). `total` is the sum of partial() over all owners. Executes the waiting updates with the
  // learning rate of `step`, gradients scaled so that their norm is at most clip_norm, and returns true. If `total` is
  // not finite, drops the waiting updates and returns false.
  bool commit(const norm& total, std::uint64_t step);

  // Returns the size of the state arrays of all owned ranges.
  std::uint64_t state_bytes() const noexcept;

private:
  struct owned;
  struct waiting {
    std::uint64_t first;
    std::span<const float> gradient;
    double* part; // its norm, in the memory of unit_
  };

  double* room_for_part(); // returns memory of unit_ for the norm of one more waiting gradient
  // Returns the owned range that holds the element; throws failure (plugin) if there is none, as require_owned() does.
  owned& owner_of(std::uint64_t element);
  void require_owned(std::uint64_t first, std::uint64_t count);
  // Update elements of owned ranges, or of one range whose elements share t, with gradients scaled by `factor`.
  void update(std::uint64_t first, std::span<const float> gradient, double factor, std::uint64_t step);
  void update_uniform(const owned& range, std::uint64_t first, std::span<const float> gradient, double factor,
                      std::uint64_t step, std::uint64_t t) const;

  update_rule rule_;
  processor& unit_;
  std::vector<optimizer_slice> slices_;
  std::vector<owned> owned_;     // ascending
  std::vector<waiting> waiting_; // ascending, so that sums do not depend on the order in which gradients arrived
  std::vector<double*> parts_;   // two doubles each, for waiting_; the first pair stays 0
};

} // namespace regatta

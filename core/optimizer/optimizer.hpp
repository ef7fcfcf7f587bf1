// SPDX-License-Identifier: Apache-2.0
//
// The engine's optimiser, over ranges of the arena, by the formulas of rule.hpp.
//
// t counts, from 1, how often an element was updated; skipped steps do not count. All state starts at 0. What an
// element becomes does not depend on how ranges are cut nor on the machine's instruction set; only where updates are
// clipped does the norm's last bit (a sum of doubles) follow the cuts.
//
// Weights, gradients and state lie where the processor computes. On a device an update is asked for, not awaited.
//
// One thread at a time: [loop], or [main] before the first step.
#pragma once

#include "memory/arithmetic.hpp"
#include "memory/processor.hpp"
#include "optimizer/rule.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace regatta {

// A tensor's part of the arena, as far as the optimiser cares. Units: elements.
struct optimizer_slice {
  std::uint64_t first, count;
  float decay, lr_scale;
};

class optimizer {
public:
  using norm = arithmetic::norm;

  // `slices` cover the arena: ascending, without gaps. `unit` outlives this. Throws failure (usage) for a configuration
  // it cannot do.
  optimizer(const optimizer_config& config, std::int64_t workers, std::vector<optimizer_slice> slices, processor& unit);
  ~optimizer();
  optimizer(const optimizer&) = delete;
  optimizer& operator=(const optimizer&) = delete;

  // Whether updates wait for commit(): with clip_norm, every owner's part of the norm must be known first.
  bool deferred() const noexcept { return rule_.clips(); }

  // Makes this rank the owner of elements first .. first + count of the arena, whose weights start at `weights` and
  // stay there. Allocates their state, zeroed and 64-byte aligned. Owned ranges do not overlap: else throws failure
  // (plugin).
  void own(std::uint64_t first, std::uint64_t count, float* weights);

  // One step's update of first .. first + gradient.size(), all of which is owned: else throws failure (plugin), nothing
  // changed. Deferred: only takes part in the norm, and the gradient must stay as it is until commit(). Allocates
  // nothing once every cut has been seen.
  void apply(std::uint64_t first, std::span<const float> gradient, std::uint64_t step);

  // Writes the norm of what was applied since the last commit into two doubles of the processor's memory; not deferred:
  // zeros. Does not depend on the order of applies.
  void partial(double* out);

  // Deferred only: does the updates that wait, scaled down to clip_norm, given the norm over all owners; or, when that
  // is not finite, skips them all and returns false.
  bool commit(const norm& total, std::uint64_t step);

  std::uint64_t state_bytes() const noexcept;

  // Names everything about the update but the slices: equal texts mean equal algorithms.
  std::string fingerprint() const;

private:
  struct owned;
  struct waiting {
    std::uint64_t first;
    std::span<const float> gradient;
    double* part; // its norm, in the processor's memory
  };

  double* room_for_part();
  owned& owner_of(std::uint64_t element);
  void require_owned(std::uint64_t first, std::uint64_t count);
  void update(std::uint64_t first, std::span<const float> gradient, double factor, std::uint64_t step);
  void update_uniform(const owned& range, std::uint64_t first, std::span<const float> gradient, double factor,
                      std::uint64_t step, std::uint64_t t) const;

  update_rule rule_;
  processor& unit_;
  std::vector<optimizer_slice> slices_;
  std::vector<owned> owned_;     // ascending
  std::vector<waiting> waiting_; // ascending, so that sums do not follow the order in which gradients arrived
  std::vector<double*> parts_;   // two doubles each, for waiting_; the first stays 0
};

} // namespace regatta

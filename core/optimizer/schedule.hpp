// SPDX-License-Identifier: Apache-2.0
//
// The learning rate over a run: a factor on optimizer.lr that depends only on the step. t is the step, counted from 0.
// All lengths (warmup, length, every, milestones) are in steps or, with unit = "epoch", in epochs of the dataset. W, L,
// N and m below are those lengths in steps, and may be fractions.
//
//   warm-up       t + 1 < W: start + (1 - start) * (t + 1) / W, instead of the formulas below  (Goyal et al., 2017)
//   constant      1
//   step          factor ^ (how many milestones m have m <= t)                                 (He et al., 2015)
//   linear        1 - (1 - end) * (t + 1 - W) / (L - W) up to step L, then `end`               (Devlin et al., 2018)
//   exponential   factor ^ floor(t / N)
//   noam          model_size^-0.5 * min((t + 1)^-0.5, (t + 1) * W^-1.5)     (Vaswani et al., 2017, section 5.3)
//
// noam's warm-up is part of its formula; it ignores `start`.
#pragma once

#include <cstdint>
#include <vector>

namespace regatta {

struct schedule_config; // experiment/experiment.hpp

class schedule {
public:
  // Throws failure (usage), which names the key, for an invalid schedule: an unknown name or unit, a missing or too
  // small length, milestones that do not ascend, or epochs for a data source without end (epoch_steps is 0).
  explicit schedule(const schedule_config& config);

  // [any] Returns the factor at step t.
  double at(std::uint64_t t) const noexcept;

private:
  enum class shape { constant, step, linear, exponential, noam };
  shape shape_;
  double warmup_, start_, length_, end_, every_, factor_, scale_; // in steps, and factors
  std::vector<double> milestones_;                                // in steps
};

} // namespace regatta

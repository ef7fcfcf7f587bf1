// SPDX-License-Identifier: Apache-2.0
//
// The losses of a worker's steps. A device may compute a loss after the model's step() has returned: it is pending
// until its fence has passed. A loss that is not finite ends the run.
#pragma once

#include "measure/rank_record.hpp"
#include "rank/session.hpp"
#include "rank/strategy_loop.hpp"

#include <cstdint>
#include <vector>

namespace regatta {

// The loss of a micro-batch, as a sum over `count` samples or tokens.
struct step_loss {
  double sum = 0; // the loss if `late` is null, else ignored
  std::uint64_t count = 0;
  const double* late = nullptr; // the address of the loss, which a device writes; valid once `fence` has passed
  rg_fence fence = 0;           // with `late`
};

// All functions are [compute]. end_step() and wait_until_at_most() throw failure (wrong) if the complete sum of a
// step's losses is not finite.
class pending_losses {
public:
  // Writes loss_sums and loss_counts of `record`. All must outlive this object.
  pending_losses(session& s, strategy_loop& loop, rank_record& record) : session_(s), loop_(loop), record_(record) {}

  void begin_step(); // of steps 0, 1, ... in order, before the step's first add()
  // Adds the loss of a micro-batch to step `n`, at once or when the device has computed it.
  void add(std::uint64_t n, const step_loss& loss);
  // Call it after the step's last micro-batch.
  void end_step(std::uint64_t n);
  // Returns whether the loss of the micro-batch that was added last was pending.
  bool last_is_pending() const { return last_is_pending_; }
  // Waits until at most `most` losses are pending, so that the compute thread is never more than `most` passes ahead of
  // the device. If it has to wait, it calls strategy_loop::release() afterwards. Throws failure if a step's loss is not
  // finite (wrong), the strategy or its transport fails meanwhile, or the case is aborted.
  void wait_until_at_most(std::size_t most);

private:
  struct pending {
    std::uint64_t step;
    step_loss loss;
  };
  void wait_for(rg_fence fence);
  void require_finite(double loss, std::uint64_t step) const;

  session& session_;
  strategy_loop& loop_;
  rank_record& record_;
  std::vector<pending> pending_; // in the order of the passes; two at most
  std::uint64_t count_ = 0;      // losses of this step
  bool last_is_pending_ = false;
};

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#include "rank/pending_losses.hpp"

#include "base/failure.hpp"

#include <cmath>

#include <fmt/format.h>

namespace regatta {

void pending_losses::begin_step() {
  record_.loss_sums.push_back(0);
  count_ = 0;
  last_is_pending_ = false;
}

void pending_losses::add(std::uint64_t n, const step_loss& loss) {
  last_is_pending_ = loss.late;
  if (loss.late)
    pending_.push_back({n, loss});
  else
    record_.loss_sums.back() += loss.sum;
  count_ += loss.count;
}

void pending_losses::end_step(std::uint64_t n) {
  if (!last_is_pending_) require_finite(record_.loss_sums.back(), n);
  record_.loss_counts.push_back(count_);
}

void pending_losses::wait_until_at_most(std::size_t most) {
  while (pending_.size() > most) {
    const auto [step, loss] = pending_.front();
    wait_for(loss.fence);
    pending_.erase(pending_.begin());
    record_.loss_sums[step] += *loss.late;
    const bool last_of_step = pending_.empty() || pending_.front().step != step;
    if (last_of_step) require_finite(record_.loss_sums[step], step);
  }
}

void pending_losses::wait_for(rg_fence fence) {
  device& device = *session_.device();
  if (device.passed(fence)) return;
  device.wait_for(device::watching, fence);
  device.notify(device::watching);
  loop_.run_until([&] { return device.passed(fence); });
  loop_.release();
}

void pending_losses::require_finite(double loss, std::uint64_t step) const {
  if (std::isfinite(loss)) return;
  // Nothing was updated yet, so the learning rate cannot be the cause.
  if (step == 0)
    throw failure(exit_code::wrong,
                  fmt::format("the loss of step 0 is not finite: look at the input (data.source = \"{}\") or the "
                              "initial weights of model {}",
                              session_.job.config.data.source, session_.job.config.model.id));
  throw failure(exit_code::wrong,
                fmt::format("the loss of step {} is not finite: training diverged; try a smaller optimizer.lr", step));
}

} // namespace regatta

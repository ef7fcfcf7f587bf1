// SPDX-License-Identifier: Apache-2.0
#include "rank/timing/device_times.hpp"

#include <algorithm>

namespace regatta {

void device_times::pass_ends(rg_fence f) {
  if (device_ && forward_ && backward_ && f) under_way_.push_back({pass{forward_, backward_, f}, {}});
  forward_ = backward_ = 0;
}

void device_times::step_ends(std::uint64_t step, std::vector<device::span> updates, const host_part& host) {
  if (device_) under_way_.push_back({{}, step_end{step, device_->mark(device::computing), std::move(updates), host}});
}

// Stream `watching` has no pending work here, so its mark passes at once. Stream `computing` waits for it, so that the
// mark of the step's end passes later.
rg_fence device_times::now() {
  if (!device_) return 0;
  const rg_fence f = device_->mark(device::watching);
  device_->wait_for(device::computing, f);
  return f;
}

void device_times::collect(const take& f) {
  while (!under_way_.empty()) {
    entry& e = under_way_.front();
    if (!device_->passed(e.a_pass ? e.a_pass->end : e.an_end->ready)) return;
    if (e.a_pass)
      add(*e.a_pass);
    else if (end_) // a model that reported no phases has no times
      f(e.an_end->step, finish(*e.an_end));
    if (e.an_end) {
      spare_ = std::move(e.an_end->updates);
      spare_.clear();
    }
    under_way_.pop_front();
  }
}

void device_times::add(const pass& p) {
  if (last_)
    now_.idle = now_.idle.value_or(0) + std::max(0.0, device_->elapsed(last_, p.forward));
  else
    idle_known_ = false;
  now_.forward += device_->elapsed(p.forward, p.backward);
  now_.backward += device_->elapsed(p.backward, p.end);
  end_ = last_ = p.end;
}

device_times::parts device_times::finish(const step_end& e) {
  const auto after = [&](rg_fence f) { return std::max(0.0, device_->elapsed(end_, f)); };
  for (const device::span& u : e.updates) now_.update += after(u.to) - after(u.from);
  const double ready = after(e.ready);
  if (e.host.read) now_.input = after(e.host.read);
  now_.update = std::clamp(ready - now_.input, now_.update, now_.update + e.host.update_after);
  now_.blocked = std::max(0.0, ready - now_.input - now_.update) + e.host.blocked_before;
  now_.update += e.host.update_before;
  if (ready > 0) last_ = e.ready;
  if (!std::exchange(idle_known_, true)) now_.idle.reset();
  return std::exchange(now_, {});
}

} // namespace regatta

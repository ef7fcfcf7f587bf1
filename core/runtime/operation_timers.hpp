// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include <regatta/abi.h>

namespace regatta {

// Operations that complete at a given time, in the order of their times. All times are in ns of one clock. [loop]
class operation_timers {
public:
  // Schedules the completion of operation `cookie`, with `bytes`, for time `at`. complete_due() then calls `f`, whose
  // result is the status of the completion; without `f` the status is RG_OK. Operations with equal times complete in
  // the order in which they were added.
  void add(std::uint64_t at, std::uint64_t cookie, std::uint64_t bytes, std::function<rg_status()> f = {}) {
    timers_.push({at, order_++, {.cookie = cookie, .bytes = bytes}, std::move(f)});
  }
  // Appends the completions that are due at time now(), which is read again for each, and removes their operations.
  // Returns the first error among them; RG_OK if there is none.
  template <class Clock> rg_status complete_due(const Clock& now, std::vector<rg_completion>& out) {
    rg_status first = RG_OK;
    while (!timers_.empty() && timers_.top().at <= now()) {
      timer due = timers_.top();
      timers_.pop();
      if (due.run) due.done.status = due.run();
      if (first >= 0) first = due.done.status;
      out.push_back(due.done);
    }
    return first;
  }
  bool empty() const { return timers_.empty(); }
  // Returns the time of the first; UINT64_MAX: there is none.
  std::uint64_t next() const { return timers_.empty() ? std::numeric_limits<std::uint64_t>::max() : timers_.top().at; }

private:
  struct timer {
    std::uint64_t at, order;
    rg_completion done;
    std::function<rg_status()> run; // empty: none
    bool operator>(const timer& o) const { return at != o.at ? at > o.at : order > o.order; }
  };
  std::priority_queue<timer, std::vector<timer>, std::greater<>> timers_;
  std::uint64_t order_ = 0;
};

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#include "rank/server.hpp"

#include "rank/batches.hpp"
#include "rank/evaluation.hpp"
#include "rank/inspection.hpp"
#include "rank/rank.hpp"
#include "rank/timing/timed_region.hpp"

#include <atomic>
#include <exception>
#include <limits>
#include <thread>

#include <nlohmann/json.hpp>
#include <regatta/clock.hpp>
#include <regatta/plugin.hpp>

namespace regatta {

namespace {

// Takes part in the workers' collective calls on the control channel during steps from .. to - 1 of `end`. The order
// must be that of batches.cpp and worker.cpp: the counts of step 0, then in each step the counts of the next step, then
// an evaluation. Returns after a timed step at which the metric reached measure.target: it is the last one.
void attend_steps(session& s, std::uint64_t from, std::uint64_t to, std::uint64_t end) {
  for (std::uint64_t n = from; n < to; ++n) {
    if (n == 0) batches::attend(s, 0);
    if (n + 1 < end) batches::attend(s, n + 1);
    if (n + 1 < end && evaluation::due(s, n + 1) && evaluation::attend(s) && n >= s.job.warmup) return;
  }
}

} // namespace

rank_record run_server(session& s) {
  rank_record record;
  timed_region region(s, record);
  strategy_host& strategy = s.strategy();
  s.control.operation("serving");
  strategy.begin(strategy_host::serve, 0);

  // The workers use the control channel collectively between warm-up and the first timed step, after the last step, and
  // to count and evaluate. A second thread takes part in these calls, because the serving thread cannot wait. The timed
  // region begins and ends on the serving thread while no worker has a pending operation, so no byte of the warm-up or
  // of finish() is counted.
  enum { before, begin_requested, begun, end_requested, ended, lost };
  std::atomic<int> phase{before};
  const auto reach = [&phase](int next) {
    phase.store(next);
    phase.notify_one();
  };
  // Returns false if serving has failed.
  const auto request = [&](int what) {
    int expected = what - 1;
    if (!phase.compare_exchange_strong(expected, what)) return false;
    s.wake();
    phase.wait(what);
    return phase.load() == what + 1;
  };
  std::exception_ptr control_error, error;
  std::thread control_thread([&] {
    try {
      const std::uint64_t warmup = s.job.warmup;
      attend_steps(s, 0, warmup, std::numeric_limits<std::uint64_t>::max());
      const auto end = warmup + static_cast<std::uint64_t>(s.control.sum("steps", {0})[0]);
      if (!request(begin_requested)) return;
      s.control.barrier("start");
      attend_steps(s, warmup, end, end);
      s.control.barrier("end");
      if (!request(end_requested)) return;
      s.control.barrier("finish");
      if (s.model().has_tables() && evaluation::wanted(s))
        evaluation::attend(s); // workers evaluate while they can still pull rows
    } catch (...) {
      control_error = std::current_exception();
      reach(lost);
      s.wake();
    }
  });
  try {
    const waiting_scope waits(s.control.status(), waiting::peers);
    while (!strategy.done(strategy_host::serve) || phase.load() < ended) {
      s.poll(s.job.spin_ns);
      if (phase.load() == lost) break;
      if (phase.load() == begin_requested) {
        region.begin();
        if (s.trace()) s.trace()->record(true); // workers know which steps are traced, this rank does not
        reach(begun);
      } else if (phase.load() == end_requested) {
        if (s.trace()) s.trace()->record(false);
        region.end();
        reach(ended);
      }
    }
  } catch (...) {
    error = std::current_exception();
    // Report now: the control thread ends only with the case, and no other rank knows of the failure.
    report_to_coordinator(s.control, [&]() -> nlohmann::json { std::rethrow_exception(error); });
    reach(lost);
  }
  control_thread.join(); // an aborted case ends the thread's wait too
  if (error) std::rethrow_exception(error);
  if (control_error) std::rethrow_exception(control_error);
  region.copy_records_of_steps();
  for (const waiting_scope waits(s.control.status(), waiting::peers); strategy.busy();) s.poll(0);
  if (!s.model().has_tables() && evaluation::wanted(s)) evaluation::attend(s);
  strategy.require_success();
  require_no_damage(strategy, "after the last step");
  record.weights_moved = any_row_changed(strategy);
  return record;
}

} // namespace regatta

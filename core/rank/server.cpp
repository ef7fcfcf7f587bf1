// SPDX-License-Identifier: Apache-2.0
#include "rank/server.hpp"

#include "base/failure.hpp"
#include "rank/clock.hpp"
#include "rank/region.hpp"

#include <atomic>
#include <exception>
#include <limits>
#include <thread>

#include <nlohmann/json.hpp>
#include <regatta/plugin.hpp>

namespace regatta {

namespace {

// A server has no say in evaluation, but it keeps the ranks' meetings.
void attend_evaluation(session& s) {
  if (s.job.config.data.evaluation_path.empty()) return;
  for (const rg_tensor& t : s.model().tensors())
    if (t.kind == RG_TENSOR_STATE) s.control.sum("state", std::vector<double>(rg::storage_of(t), 0.0));
  s.control.sum("metric", std::vector<double>(s.model().info().metric_sums, 0.0));
}

} // namespace

rank_record run_server(session& s) {
  rank_record record;
  timed_region region(s);
  exchange& x = s.exchange();
  s.control.operation("serving");
  x.begin(exchange::serve, 0);

  // The workers meet between warm-up and the first timed step, and this rank with them, on a thread of its own: serving
  // cannot wait. Nothing is under way at that moment, so what the counters say then is the region's beginning.
  enum { before, met, begun };
  std::atomic<int> phase{before};
  std::exception_ptr meeting_error, error;
  std::thread meeting([&] {
    try {
      s.control.sum("steps", {0});
      phase.store(met);
      s.wake();
      phase.wait(met);
      s.control.barrier("start");
      if (s.model().has_tables()) attend_evaluation(s); // workers evaluate while they can still ask for rows
    } catch (...) {
      meeting_error = std::current_exception();
      s.wake();
    }
  });
  try {
    while (!x.done(exchange::serve)) {
      x.poll(std::numeric_limits<std::uint64_t>::max(), s.job.spin_ns);
      if (s.control.aborted()) throw peer_failure("ended because another rank failed");
      if (phase.load() == met) {
        region.begin(record);
        phase.store(begun);
        phase.notify_one();
      }
    }
  } catch (...) {
    error = std::current_exception();
    phase.store(begun);
    phase.notify_one();
  }
  meeting.join(); // an aborted case ends its waiting too
  if (error) std::rethrow_exception(error);
  if (meeting_error) std::rethrow_exception(meeting_error);
  region.end(record);
  while (x.busy()) x.poll(std::numeric_limits<std::uint64_t>::max(), 0);
  if (!s.model().has_tables()) attend_evaluation(s);
  return record;
}

} // namespace regatta

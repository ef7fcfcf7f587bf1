// SPDX-License-Identifier: Apache-2.0
//
// The timed region of one rank: reads the rank's counters at its begin and end, and puts the differences into its
// record.
#pragma once

#include "measure/rank_record.hpp"
#include "rank/session.hpp"
#include "rank/timing/sensors.hpp"

#include <optional>

namespace regatta {

class timed_region {
public:
  // Writes the differences into `record`, whose members of the region must be 0. Both must outlive this object.
  timed_region(session& s, rank_record& record) : session_(s), record_(record), sensors_(s.device()) {}
  // [loop] All functions are called by the thread that holds the strategy. begin() also discards what the strategy has
  // recorded so far. Each of begin(), end(), pause() and resume() takes milliseconds if a device has sensors.
  void begin();
  void end();
  // Copies the strategy's per-step records. Call it once serve() and finish() are over, because servers record the last
  // steps late.
  void copy_records_of_steps();
  // Exclude an evaluation, between the two calls, from the region's bytes, CPU time and sensors. Wall time is not
  // excluded: the caller puts it into step_time::paused.
  void pause();
  void resume();

private:
  // Adds the counters to the record, or subtracts them: +1 at the end of an interval, -1 at its begin.
  void count(int sign);

  session& session_;
  rank_record& record_;
  sensor_watch sensors_;
  std::uint64_t server_update_ = 0;
  std::optional<cpu_ticks> ticks_;
  std::optional<std::int64_t> waited_; // run_queue_ns()
};

} // namespace regatta

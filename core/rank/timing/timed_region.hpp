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
  explicit timed_region(session& s) : session_(s), sensors_(s.device()) {}
  // [loop] All functions are called by the thread that holds the strategy. begin() also discards what the strategy has
  // recorded so far. Each of begin(), end(), pause() and resume() takes milliseconds if a device has sensors.
  void begin(rank_record& record);
  void end(rank_record& record);
  // Copies the strategy's per-step records. Call it once serve() and finish() are over, because servers record the last
  // steps late.
  void copy_records_of_steps(rank_record& record);
  // Exclude an evaluation, between the two calls, from the region's bytes, CPU time and sensors. Wall time is not
  // excluded: the caller puts it into step_time::paused.
  void pause();
  void resume();

private:
  session& session_;
  sensor_watch sensors_;
  rg_counters counters_{};
  double cpu_ = 0;
  rg_counters paused_counters_{};
  double paused_cpu_ = 0;
  std::uint64_t given_bytes_ = 0, paused_given_bytes_ = 0;
  std::uint64_t server_update_ = 0;
  std::optional<cpu_ticks> ticks_;
};

} // namespace regatta

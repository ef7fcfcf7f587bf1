// SPDX-License-Identifier: Apache-2.0
#include "rank/timing/timed_region.hpp"

#include <regatta/clock.hpp>

namespace regatta {

void timed_region::begin(rank_record& record) {
  sensors_.begin(); // takes long, so it comes before the first counter is read
  session_.strategy().forget_records();
  counters_ = session_.counters();
  given_bytes_ = session_.strategy().given_bytes();
  ticks_ = read_cpu_ticks();
  server_update_ = session_.strategy().server_update_ns();
  cpu_ = process_cpu_seconds();
  record.region_begin = rg::steady_ns();
}

void timed_region::pause() {
  sensors_.end();
  paused_counters_ = session_.counters();
  paused_given_bytes_ = session_.strategy().given_bytes();
  paused_cpu_ = process_cpu_seconds();
}

void timed_region::resume() {
  const rg_counters c = session_.counters();
  counters_.bytes_sent += c.bytes_sent - paused_counters_.bytes_sent;
  counters_.bytes_received += c.bytes_received - paused_counters_.bytes_received;
  given_bytes_ += session_.strategy().given_bytes() - paused_given_bytes_;
  cpu_ += process_cpu_seconds() - paused_cpu_;
  sensors_.begin();
}

void timed_region::end(rank_record& record) {
  record.region_end = rg::steady_ns();
  record.cpu_seconds = process_cpu_seconds() - cpu_;
  record.server_update_ns = static_cast<std::int64_t>(session_.strategy().server_update_ns() - server_update_);
  record.steal = steal_between(ticks_, read_cpu_ticks());
  record.strategy = session_.strategy().records();
  const rg_counters c = session_.counters();
  record.bytes_sent = c.bytes_sent - counters_.bytes_sent;
  record.bytes_received = c.bytes_received - counters_.bytes_received;
  record.given_bytes = session_.strategy().given_bytes() - given_bytes_;
  sensors_.end();
  record.gpu = sensors_.figures();
}

void timed_region::copy_records_of_steps(rank_record& record) {
  record.strategy.by_step = session_.strategy().records().by_step;
  record.first_step = session_.job.warmup;
}

} // namespace regatta

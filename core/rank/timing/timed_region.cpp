// SPDX-License-Identifier: Apache-2.0
#include "rank/timing/timed_region.hpp"

#include <regatta/clock.hpp>

namespace regatta {

void timed_region::count(int sign) {
  connected_transport& transport = session_.transport();
  const rg_counters c = transport.counters();
  const auto times = static_cast<std::uint64_t>(sign); // wraps around, so -1 subtracts
  record_.bytes_sent += times * c.bytes_sent;
  record_.bytes_received += times * c.bytes_received;
  record_.given_bytes += times * session_.strategy().given_bytes();
  for (const auto& [name, value] : transport.own_counters()) record_.transport_counters[name] += sign * value;
}

void timed_region::begin() {
  sensors_.begin(); // takes long, so it comes before the first counter is read
  session_.strategy().forget_records();
  count(-1);
  ticks_ = read_cpu_ticks();
  waited_ = run_queue_ns();
  server_update_ = session_.strategy().server_update_ns();
  record_.cpu_seconds -= process_cpu_seconds();
  record_.region_begin = rg::steady_ns();
}

void timed_region::pause() {
  sensors_.end();
  count(+1);
  record_.cpu_seconds += process_cpu_seconds();
}

void timed_region::resume() {
  count(-1);
  record_.cpu_seconds -= process_cpu_seconds();
  sensors_.begin();
}

void timed_region::end() {
  record_.region_end = rg::steady_ns();
  record_.cpu_seconds += process_cpu_seconds();
  record_.server_update_ns = static_cast<std::int64_t>(session_.strategy().server_update_ns() - server_update_);
  record_.steal = steal_between(ticks_, read_cpu_ticks());
  // Of a server, another thread may hold the strategy now than at the begin: then the difference means nothing.
  if (const auto now = run_queue_ns(); waited_ && now && *now >= *waited_ && record_.region_end > record_.region_begin)
    record_.run_queue =
        static_cast<double>(*now - *waited_) / static_cast<double>(record_.region_end - record_.region_begin);
  record_.strategy = session_.strategy().records();
  count(+1);
  sensors_.end();
  record_.gpu = sensors_.figures();
}

void timed_region::copy_records_of_steps() {
  record_.strategy.by_step = session_.strategy().records().by_step;
  record_.first_step = session_.job.warmup;
}

} // namespace regatta

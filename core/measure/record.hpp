// SPDX-License-Identifier: Apache-2.0
//
// What one rank measured in one run. The rank fills it and sends it to the coordinator as JSON; figures.hpp makes the
// run's figures of the records of all ranks. docs/measurement.md says how each number is read.
//
// Times are nanoseconds of the host's steady clock, so those of two ranks on one host can be compared.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "measure/gpu.hpp"

namespace regatta {

// One timed step as the compute thread of a worker lived through it. begin, compute_end and end are points in time; the
// others are durations inside [begin, end]. What they do not cover is reported as "other".
struct step_time {
  std::int64_t begin = 0;
  std::int64_t input = 0;       // until the batch lay in memory
  std::int64_t forward = 0;     // without what it waited for in need(): that is part of `blocked`
  std::int64_t backward = 0;    // forward and backward cover all micro-batches of the step
  std::int64_t update = 0;      // the optimiser's work on this thread
  std::int64_t blocked = 0;     // waited for bytes, peers or servers, while not updating
  std::int64_t compute_end = 0; // when the backward pass ended
  std::int64_t end = 0;         // when the next step may begin
  // Blocked before the backward pass by what belongs to the step before (its weights, or rows that depend on it): since
  // when, and for how long; part of `blocked`.
  std::int64_t stalled_at = 0, stalled = 0;
  std::int64_t paused = 0; // between the last step's end and `begin`, evaluating: no part of the region
};

// What a strategy reported about itself, by name. Its own thread's.
struct strategy_records {
  std::map<std::string, std::map<std::int64_t, std::uint64_t>, std::less<>> counts; // how often each value was seen
  std::map<std::string, double, std::less<>> sums;
  // Values that belong to one step of one worker. Whether a step counts is known when all ranks' records are there.
  struct of_step {
    std::uint32_t worker;
    std::uint64_t step, times;
    std::int64_t value;
  };
  std::map<std::string, std::vector<of_step>, std::less<>> by_step;

  // Allocate only what is new.
  void count(std::string_view name, std::int64_t value);
  void count(std::string_view name, std::int64_t value, std::uint32_t worker, std::uint64_t step);
  void add(std::string_view name, double amount);
};

struct rank_record {
  std::int32_t rank = 0;
  std::int32_t worker = -1; // its number as a worker; -1: it is none
  std::int32_t server = -1; // likewise
  std::string host;
  std::string role; // "worker 0 + server 0": for people

  // The timed region: from this rank's own return from the barrier after warm-up to its end of the last step, not
  // before that step's `end`.
  std::int64_t region_begin = 0, region_end = 0;
  // Workers only, and the same on all: a step waits until all workers have computed the step this many before. Nothing:
  // it waits for no other worker, or the strategy is synchronous.
  std::optional<std::uint64_t> bound;
  bool agrees = false; // the strategy promises the same final weights on all workers
  // Workers only. Call steps.reserve(n) before the region: push_back then allocates nothing.
  std::vector<step_time> steps;
  std::uint64_t samples = 0; // that this worker trained on inside the region

  // Workers only, one element a step from step 0 on, warm-up included: the sum of the loss and what it is the sum of.
  std::vector<double> loss_sums;
  std::vector<std::uint64_t> loss_counts;

  // This worker's timed steps, one element a step: the tokens without padding where batches are counted in tokens; else,
  // where the model counts, its first count.
  std::vector<std::uint64_t> unit_counts;
  bool counts_tokens = false;

  std::int64_t communication_ns = 0; // CPU time of the loop: transport, strategy, sums; inside the region
  std::int64_t server_update_ns = 0; // the optimiser's time as a server, inside the region
  std::int64_t drain_ns = 0;         // from region_end until finish() was over
  std::uint64_t bytes_sent = 0, bytes_received = 0; // inside the region, as the transport counts them
  std::uint64_t memory_peak_bytes = 0;              // 0: unknown
  double cpu_seconds = 0;                           // of all threads, inside the region
  std::optional<gpu_figures> gpu;                   // inside the region; nothing: none, or no sensors
  std::optional<double> steal; // share of the host's CPU time that went to others, inside the region

  strategy_records strategy;    // inside the region; steps as the strategy numbers them, from the warm-up's first on
  std::uint64_t first_step = 0; // of the region: the steps of the warm-up

  // For the canary. Bytes that the strategy gave to the transport inside the region, as the engine counts them; whether a
  // gradient was not 0 and a learning rate above 0 (workers only); whether weights or rows that this rank holds changed
  // since the start.
  std::uint64_t given_bytes = 0;
  bool weights_should_move = false, weights_moved = false;

  std::string weights_hash; // hex, of the final weights; empty: not hashed
  std::string layout;       // of the weights in memory, as the model names it
  std::string kernels;      // "name: what runs", a line each
  std::string metric;       // name; empty: none
  std::optional<double> metric_value;
  std::vector<std::pair<std::uint64_t, double>> metric_curve; // steps that were over, and the metric then
  std::uint64_t skipped_records = 0;                          // of the dataset, because they are damaged
  std::vector<std::string> warnings;
};

nlohmann::json to_json(const rank_record& record);
// Throws failure (run), with the member's name, where one is missing or has the wrong type. A loss that is not finite travels
// as null and comes back as NaN.
rank_record record_from_json(const nlohmann::json& j);

// Most memory this process ever had resident, in bytes; pages of shared memory that it touched are included, and so
// count once in every process that maps them. 0: unknown.
std::uint64_t memory_peak_bytes();

// CPU time of all threads of this process since its start.
double process_cpu_seconds();

// The host's CPU time since boot, over all cores. Take one at each end of the region.
struct cpu_ticks {
  std::uint64_t total = 0, steal = 0;
};
std::optional<cpu_ticks> read_cpu_ticks();
// Share of the time between that the hypervisor gave to others, 0 to 1; nothing where it is unknown.
std::optional<double> steal_between(const std::optional<cpu_ticks>& from, const std::optional<cpu_ticks>& to);

} // namespace regatta

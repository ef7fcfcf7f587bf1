// SPDX-License-Identifier: Apache-2.0
//
// The measurements of one rank in one run. The rank fills a record and sends it to the coordinator as JSON;
// run_figures.hpp computes the run's figures from the records of all ranks. docs/measurement.md defines each number.
//
// Times are nanoseconds of the host's steady clock, so times of two ranks on one host can be compared. For ranks on
// several hosts the record of the run has the course of each host's clock (measure/records.hpp).
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

// One timed step, as the compute thread of a worker spends it. begin, compute_end and end are points in time; the
// others are durations inside [begin, end]. The time that they do not cover is reported as "other". On a device with
// timing marks, forward, backward, update, blocked and a part of input are times of the device (device_times::parts),
// compute_end is end, and stalled is 0.
struct step_time {
  std::int64_t begin = 0;
  std::int64_t input = 0;   // until the batch was in memory
  std::int64_t forward = 0; // without waits in need(), which are part of `blocked`
  // forward and backward cover all micro-batches of the step. Of a model that does not report RG_PHASE_BACKWARD, this
  // is the whole pass.
  std::int64_t backward = 0;
  std::int64_t update = 0;      // the optimizer's work on this thread
  std::int64_t blocked = 0;     // waits for bytes, peers or servers, minus updates
  std::int64_t compute_end = 0; // when the backward pass ended
  std::int64_t end = 0;         // when the next step may begin
  // Begin and length of the wait before the backward pass for weights or rows of the step before; part of `blocked`.
  std::int64_t stalled_at = 0, stalled = 0;
  std::int64_t paused = 0; // evaluation between the end of the step before and `begin`; no part of the region
};

// Values that a strategy recorded, by name. Not thread-safe.
struct strategy_records {
  std::map<std::string, std::map<std::int64_t, std::uint64_t>, std::less<>> counts; // how often each value was recorded
  std::map<std::string, double, std::less<>> sums;
  // A value that belongs to one step of one worker, and how often it was recorded in succession. Whether the step
  // counts is known only from the records of all ranks.
  struct of_step {
    std::uint32_t worker;
    std::uint64_t step, times;
    std::int64_t value;
  };
  std::map<std::string, std::vector<of_step>, std::less<>> by_step;

  // These allocate only for new names, values and steps. count() records a value once, in `counts`, or in `by_step` if
  // it belongs to a step of a worker; add() adds to a sum.
  void count(std::string_view name, std::int64_t value);
  void count(std::string_view name, std::int64_t value, std::uint32_t worker, std::uint64_t step);
  void add(std::string_view name, double amount);
};

struct rank_record {
  std::int32_t rank = 0;
  std::int32_t worker = -1;              // its number as a worker; -1: it is no worker
  std::int32_t server = -1;              // its number as a server; -1: it is no server
  std::string host;                      // of several hosts, each has another name
  std::optional<std::int32_t> numa_node; // of the CPUs that it may run on; std::nullopt: several, or unknown
  std::string role;                      // "worker 0 + server 0": for people

  // The timed region. Of a worker: from its return from the barrier after warm-up to its end of the last step, which is
  // not before that step's `end`. Of a server that is no worker: from just before that barrier until all workers have
  // ended their last step.
  std::int64_t region_begin = 0, region_end = 0;
  // Workers only, and the same on all: a step waits until all workers have computed the step this many steps before. 0
  // if the strategy is synchronous. std::nullopt: it waits for no other worker.
  std::optional<std::uint64_t> bound;
  bool agrees = false; // the strategy promises the same final weights on all workers
  // Workers only. Call steps.reserve(n) before the region, so that push_back allocates nothing in it.
  std::vector<step_time> steps;
  std::vector<double> warm_up_ns; // by warm-up step: its length, without evaluations
  std::uint64_t samples = 0;      // that this worker trained on in the region

  // Workers only, one element per step from step 0 on, warm-up included: the sum of the losses and the number of losses
  // in it; 0: the step has no loss.
  std::vector<double> loss_sums;
  std::vector<std::uint64_t> loss_counts;

  // One element per timed step of this worker: the tokens without padding if batches are counted in tokens; else the
  // model's first count; empty if it counts nothing.
  std::vector<std::uint64_t> unit_counts;
  bool counts_tokens = false;
  // By sparse table: the rows that this worker touched in the timed steps, each counted once in a step.
  std::vector<std::uint64_t> touched_rows;

  std::int64_t communication_ns = 0; // workers only: CPU time of the loop (transport, strategy, sums) in the region
  std::int64_t server_update_ns = 0; // the optimizer's time as a server in the region
  std::int64_t drain_ns = 0;         // workers only: from region_end until finish() was over, without an evaluation
  std::uint64_t bytes_sent = 0, bytes_received = 0; // in the region, as the transport counts them
  std::map<std::string, double> transport_counters; // in the region: counters of the transport's own, by name
  std::uint64_t memory_peak_bytes = 0;              // of the whole run: memory_peak_bytes(); 0: unknown
  double cpu_seconds = 0;                           // of all threads in the region
  std::optional<gpu_figures> gpu;                   // in the region; std::nullopt: no GPU or no sensors
  std::optional<double> steal; // share of the host's CPU time that the hypervisor gave to others, in the region
  // Seconds that the thread which holds the strategy (a worker's compute thread) was ready to run but had no CPU, over
  // the region's length. Other threads of the rank are left out: they may share its CPU, and wait for it in every run.
  std::optional<double> run_queue;

  strategy_records strategy;    // in the region; values of steps since the first warm-up step
  std::uint64_t first_step = 0; // of the region: equals the number of warm-up steps

  // For report/result_checks.hpp: bytes that the strategy gave to the transport in the region, as the engine counts
  // them; whether a gradient was not 0 and a learning rate above 0 (workers only); whether weights (workers only) or
  // rows of this rank changed since the start.
  std::uint64_t given_bytes = 0;
  bool weights_should_move = false, weights_moved = false;

  std::string weights_hash;                                   // hex, of the final weights; empty: not hashed
  std::string layout;                                         // of the weights in memory, as the model names it
  std::string kernels;                                        // one line "name: kernel" each
  std::string isa;                                            // instruction set of this process, as train.isa names it
  std::string metric;                                         // its name; empty: none
  std::optional<double> metric_value;                         // of the last evaluation; std::nullopt: none
  std::vector<std::pair<std::uint64_t, double>> metric_curve; // completed steps, and the metric then
  std::int64_t evaluation_ns = 0;                             // of all evaluations, those of the warm-up included
  std::uint64_t skipped_records = 0;                          // of the dataset, because they are damaged
  std::vector<std::string> warnings;
};

// [any] Returns an object with the record's members under their names.
nlohmann::json to_json(const rank_record& record);
// [any] Returns the record that to_json() wrote. Throws failure (run) with the member's name if a member is missing or
// has the wrong type. An infinite or NaN loss is null in JSON text and returns as NaN.
rank_record record_from_json(const nlohmann::json& j);

// Returns the peak resident memory of this process in bytes; 0: unknown. Pages of shared memory that it touched are
// included, and so count once in every process that maps them.
std::uint64_t memory_peak_bytes();

// Returns the CPU time of all threads of this process since its start, in seconds.
double process_cpu_seconds();

// Returns the time that the calling thread has waited for a CPU since it began, in nanoseconds
// (/proc/thread-self/schedstat); std::nullopt if the kernel does not count it.
std::optional<std::int64_t> run_queue_ns();

// The host's CPU time since boot, over all cores, in the kernel's ticks (USER_HZ).
struct cpu_ticks {
  std::uint64_t total = 0, steal = 0; // steal: the part that the hypervisor gave to others
};
// Reads /proc/stat; std::nullopt if it cannot be read. Read it at each end of the region.
std::optional<cpu_ticks> read_cpu_ticks();
// Returns the share of steal in the time from `from` to `to`, 0 to 1; std::nullopt if either is unknown or no time has
// passed.
std::optional<double> steal_between(const std::optional<cpu_ticks>& from, const std::optional<cpu_ticks>& to);

} // namespace regatta

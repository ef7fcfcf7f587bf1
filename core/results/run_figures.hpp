// SPDX-License-Identifier: Apache-2.0
//
// Computes the figures of one run from the records of its ranks.
//
// Timed region. A worker's region lasts from its return from the barrier after warm-up to the end of its last timed
// step. Evaluations are not part of it.
//   synchronous: the run's region is as long as the longest region of a worker; all steps count.
//   asynchronous: it is as long as the shortest region of a worker. Of each worker the steps count that it made within
//   that time from the begin of its own region; the step that is interrupted counts by the part of its time.
//
//   samples/s = samples of the counted steps of all workers / length of the region
//   batches/s = counted steps, averaged over workers / length of the region
//   All other figures of steps are those of the completed ones.
//
// Partition of the step. For step s of worker r, with last[s] = max of compute_end[s] over all workers, as time of r's
// clock; the other names are members of r's step_time for s (rank_record.hpp): `end` is when the step ended, `stalled`
// the part of `blocked` before the backward pass, spent waiting for weights or rows of the step before, and
// `stalled_at` when that wait began:
//   wait                  = min(end, last[s]) - compute_end, at least 0 and at most blocked - stalled
//                           + last[s - 1] - stalled_at, at least 0 and at most stalled: a peer was late
//   exposed_communication = blocked - wait: bytes or a server's update were outstanding
//   other                 = step - everything else, so that the parts sum to the step
// A worker that may be `bound` steps ahead is compared with last[s - bound]. A worker that depends on no peer's step
// has no wait. If the clocks of the hosts are not known well enough (common_clock.hpp), wait and exposed_communication
// are not told apart: `blocked` has their sum.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "clocks/clock_course.hpp"
#include "measure/rank_record.hpp"
#include "results/common_clock.hpp"

namespace regatta {

// Seconds of a step, as the compute thread of a worker spends them; the parts of step_time, with `blocked` divided.
// `blocked` is what could not be divided: 0, or all of it, and exposed_communication and wait are 0.
struct time_parts {
  double input = 0, forward = 0, backward = 0, update = 0, exposed_communication = 0, wait = 0, other = 0, blocked = 0;

  double total() const { return input + forward + backward + update + exposed_communication + wait + other + blocked; }
};

// All parts with their names, for code that treats them uniformly.
inline constexpr std::array<std::pair<const char*, double time_parts::*>, 8> time_part_names{{
    {"input", &time_parts::input},
    {"forward", &time_parts::forward},
    {"backward", &time_parts::backward},
    {"update", &time_parts::update},
    {"exposed_communication", &time_parts::exposed_communication},
    {"wait", &time_parts::wait},
    {"other", &time_parts::other},
    {"blocked", &time_parts::blocked},
}};

// Where a rank ran.
struct rank_place {
  std::string host;
  std::optional<std::int32_t> numa_node; // std::nullopt: several, or unknown
};

// How fast a worker computes beside its peers.
struct worker_pace {
  std::int32_t rank = 0;
  std::string host;
  double compute_seconds = 0; // median over its counted steps of the step without the time that it was blocked
  // In which share of the steps it was the last worker that ended its backward pass; std::nullopt: the strategy is
  // asynchronous without a bound, the clocks of the hosts are not known well enough, or the workers compute on devices
  // (campaign_records.cpp).
  std::optional<double> last;
};

// The clocks of the workers' hosts; common_clock has the meaning of the members.
struct clock_figures {
  std::vector<host_offset> offsets;
  std::optional<double> uncertainty_seconds;
  std::string reason; // not empty: wait and exposed_communication are not told apart
};

struct run_figures {
  std::vector<double> counted_steps; // by worker
  double samples = 0;                // of the counted steps of all workers
  // Sum of rank_record.unit_counts over the counted steps of all workers; std::nullopt if a worker did not count them.
  std::optional<double> units;
  double samples_per_second = 0, batches_per_second = 0;
  std::optional<double> units_per_second;        // std::nullopt as `units`
  bool counts_tokens = false;                    // the units are tokens without padding; else the model's first count
  double region_seconds = 0;                     // without evaluations
  double samples_per_worker_step = 0;            // mean over workers
  std::vector<std::vector<double>> step_seconds; // of every completed step, by worker
  time_parts time; // mean over workers of their means over completed steps; without workers that have none

  std::vector<rank_place> places; // by rank
  std::vector<worker_pace> paces; // by worker, without those that completed no step
  clock_figures clocks;

  // "Per step" below divides by the timed steps of one worker, counted or not.
  double communication_seconds = 0; // per step: CPU time of the loop (transport, strategy, sums), mean over workers
  std::optional<double> server_update_seconds; // per step: mean over servers; std::nullopt without servers
  double drain_seconds = 0;                    // the longest of all ranks
  // Per step: mean over ranks that are workers (including a co-located server's bytes), and over ranks that are only
  // servers; std::nullopt without such ranks.
  std::optional<double> worker_sent_bytes, worker_received_bytes, server_sent_bytes, server_received_bytes;
  // The strategy's records: values are counted over all ranks; sums are per step, as a mean over the ranks that
  // reported them.
  strategy_records strategy;
  std::vector<std::map<std::string, double>> transport_counters; // by rank: rank_record::transport_counters
  std::vector<std::uint64_t> memory_peak_bytes;                  // by rank; 0: unknown
  std::vector<double> cpu_seconds;                               // by rank, within the region
  std::vector<std::optional<gpu_figures>> gpus;                  // by rank, within the region

  // One for each step that has a loss, warm-up included: the mean over the samples (or tokens) of all workers.
  std::vector<double> losses;
  // For each loss: its step, counted from 0 at the first warm-up step; and when the last worker ended that step, in
  // seconds from that worker's begin of the timed region, without evaluations (std::nullopt for a warm-up step).
  std::vector<std::uint64_t> loss_steps;
  std::vector<std::optional<double>> loss_seconds;
  bool loss_finite = true;
  std::string weights_hash;               // of worker 0's final weights; empty: not hashed
  std::optional<bool> replicas_identical; // final weights of all workers; std::nullopt if a worker did not hash them
  // On any rank; std::nullopt if no update had to change them, because every gradient or learning rate was 0.
  std::optional<bool> weights_moved;
  std::uint64_t given_bytes = 0;      // by the strategy to the transport in the timed region, on all ranks
  bool must_agree = false;            // the strategy promises that the replicas are the same
  std::string metric;                 // name of the evaluation's metric; empty: none
  std::optional<double> metric_value; // after the last step
  std::vector<std::pair<std::uint64_t, double>> metric_curve; // completed steps, and the metric then
  std::vector<std::optional<double>> metric_seconds; // of each of metric_curve, when it was computed: as loss_seconds
  // The same from the begin of the first step on: the warm-up steps, and the timed region. Without evaluations.
  std::vector<double> metric_training_seconds;
  double evaluation_seconds = 0;     // of all evaluations, those of the warm-up included: the longest of all workers
  std::uint64_t skipped_records = 0; // of the dataset, by all workers
  std::string kernels;               // of worker 0: one line "name: kernel" each
  std::string layout;                // of worker 0's weights in memory, as its model names it
  std::string isa;                   // instruction set of worker 0's process; empty: simulated
  // The largest of all ranks (std::nullopt: unknown): the share of the host's CPU time that the hypervisor gave to
  // others, and the share of the region in which the thread that holds the strategy was ready to run but had no CPU.
  std::optional<double> steal, run_queue;
  std::vector<std::string> warnings; // of all ranks, each text once
};

// The speed of the machine before a round: that of two CPUs that work at once.
struct machine_rates {
  double fma = 0;                                // multiply-adds in fp32, FLOP/s of both together
  double copy = 0;                               // copies of 16 MiB, copied bytes/s of both together, each counted once
  std::optional<double> line_round_trip_seconds; // of a cache line between the two; std::nullopt: unknown
  std::optional<double> clock_hz;                // of the first of them; std::nullopt: unknown
};

// One repeat of a case: its run, and the runs of the same round that it is compared with (std::nullopt: not run). The
// baseline runs twice in a round: the difference of the two is noise.
struct repeat_figures {
  run_figures run;
  std::optional<run_figures> baseline, contention, baseline_again;
  std::vector<std::string>
      disturbed; // why the machine was busy with something else during the round; empty: it was not
  std::optional<machine_rates> machine; // before the round; std::nullopt: not measured
  std::uint64_t round = 0;              // the number of the round's first run; 0: simulated
};

// [any] Computes the figures. `records` are those of all ranks of one run, in any order; `hosts` those of the run's
// record. Throws failure (run) if there is no worker or no timed step, if workers have different numbers of steps, or
// if no step ended within the region.
run_figures figures_of(const std::vector<rank_record>& records, bool asynchronous,
                       const std::vector<timed_host>& hosts = {});

// Combines the figures of one rank from several runs: the maximum of memory_peak_bytes and of temperature_celsius, the
// median of all other numbers, and the first run's names. Runs in which a number is unknown do not count for it.
// Requires at least one run.
gpu_figures over_runs(const std::vector<gpu_figures>& runs);

} // namespace regatta

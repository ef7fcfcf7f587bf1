// SPDX-License-Identifier: Apache-2.0
//
// The figures of one run, made of the records of its ranks.
//
// Timed region. A worker's is from its own return from the barrier after warm-up to its end of the last timed step.
//   synchronous: the region's length is that of the longest worker; all steps count.
//   asynchronous: it ends when the first worker has finished, and the steps that each worker completed within that
//   length of its own region count.
//
//   samples/s = samples of the counted steps of all workers / length of the region
//   batches/s = counted steps, averaged over workers / length of the region
//
// Partition of the step. For step s of worker r, with last[s] = max over workers of compute_end[s]; `stalled` is the part
// of `blocked` before the backward pass, which weights or rows of the step before cause:
//   wait                  = min(end, last[s]) - compute_end[r], at least 0 and at most blocked - stalled
//                           + last[s - 1] - stalled_at, at least 0 and at most stalled: a peer had not got there yet
//   exposed_communication = blocked - wait: bytes or a server's update were outstanding
//   other                 = step - everything else, so that the parts sum to the step
// A worker that may be `bound` steps ahead is compared with last[s - bound]. One that waits for no peer's step has no
// wait. Clocks of different hosts are not compared: there, too, being blocked counts as communication.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "measure/record.hpp"

namespace regatta {

// Seconds of a step, as the compute thread of a worker spends them.
struct time_parts {
  double input = 0, forward = 0, backward = 0, update = 0, exposed_communication = 0, wait = 0, other = 0;

  double total() const { return input + forward + backward + update + exposed_communication + wait + other; }
};

// Every part by name, for whoever treats them alike.
inline constexpr std::array<std::pair<const char*, double time_parts::*>, 7> time_part_names{{
    {"input", &time_parts::input},
    {"forward", &time_parts::forward},
    {"backward", &time_parts::backward},
    {"update", &time_parts::update},
    {"exposed_communication", &time_parts::exposed_communication},
    {"wait", &time_parts::wait},
    {"other", &time_parts::other},
}};

struct run_figures {
  double samples = 0;          // of the counted steps of all workers
  std::optional<double> units; // likewise, the model's first count; nothing where it counts nothing
  double samples_per_second = 0, batches_per_second = 0;
  std::optional<double> units_per_second;        // by rank_record.unit_counts; nothing where nothing is counted
  bool counts_tokens = false;                    // they are tokens
  double region_seconds = 0;                     // without evaluations
  double samples_per_worker_step = 0;            // mean over workers
  std::vector<std::vector<double>> step_seconds; // of every counted step, by worker
  time_parts time;                               // mean over workers of their means over counted steps

  double communication_seconds = 0;            // a step: CPU time of the loop, mean over workers
  std::optional<double> server_update_seconds; // a step: mean over servers; nothing without servers
  double drain_seconds = 0;                    // the longest
  // A step: mean over ranks that are workers (with a co-located server's), and over those that are only servers.
  std::optional<double> worker_sent_bytes, worker_received_bytes, server_sent_bytes, server_received_bytes;
  // What the strategy reported: values counted over all ranks; sums a step, as a mean over the ranks that reported them.
  strategy_records strategy;
  std::vector<std::uint64_t> memory_peak_bytes; // by rank; 0: unknown
  std::vector<double> cpu_seconds;              // by rank, within the region
  std::vector<std::optional<gpu_figures>> gpus; // likewise

  std::vector<double> losses; // mean over the samples of all workers, a step, warm-up included
  // Beside each loss: its step, from 0 on, and when the last worker ended that step, in seconds of the timed region
  // without evaluations; nothing for a step of the warm-up.
  std::vector<std::uint64_t> loss_steps;
  std::vector<std::optional<double>> loss_seconds;
  bool loss_finite = true;
  std::string weights_hash;               // of worker 0's final weights; empty: not hashed
  std::optional<bool> replicas_identical; // final weights of all workers; nothing where a rank did not hash them
  std::optional<bool> weights_moved;      // of any rank; nothing where no update had to move them
  std::uint64_t given_bytes = 0;          // by the strategy to the transport, on all ranks
  bool must_agree = false;                // the strategy promises that they are the same
  std::string metric;
  std::optional<double> metric_value;
  std::vector<std::pair<std::uint64_t, double>> metric_curve; // by steps done
  std::vector<std::optional<double>> metric_seconds;          // when those steps were done, as loss_seconds
  std::uint64_t skipped_records = 0;                          // of the dataset, by all workers
  std::string kernels, layout;                                // of worker 0
  std::optional<double> steal;                                // of the worst host
  std::vector<std::string> warnings;
};

// `records` of all ranks of one run, in any order. Throws failure (exit code run) where they cannot be of one run: no
// worker, no timed step, or workers with different numbers of steps.
run_figures figures_of(const std::vector<rank_record>& records, bool asynchronous);

} // namespace regatta

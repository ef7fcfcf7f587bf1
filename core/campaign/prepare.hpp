// SPDX-License-Identifier: Apache-2.0
//
// Turns a case into the ranks that run it: checks that its parts fit together, and assigns roles and CPUs.
#pragma once

#include "campaign/plugin_facts.hpp"
#include "experiment/experiment.hpp"
#include "launch/launch.hpp"
#include "rank/job.hpp"

#include <optional>
#include <string>
#include <vector>

namespace regatta {

struct prepared_run {
  rank_job job;                 // every rank's
  std::string address;          // IP address at which the coordinator listens: of the first host of a launcher
  std::vector<rank_plan> ranks; // by rank
  bool exchanges_rows = false;  // the strategy exchanges rows of sparse tables, and this transport can carry them
  bool synchronous = true;      // the strategy's RG_PLAN_SYNCHRONOUS
  bool communicates = false;    // true if any two ranks ever exchange a message
  std::optional<std::string> launcher_plugin; // the transport's file if a launcher must start its ranks, else nullopt
  std::vector<std::string> warnings;          // settings that were changed, such as rounded steps; oversubscribed cores
};

// Returns the run of a case. Throws the failure of facts.of(c); failure (skipped) if the launcher has started too few
// processes; else one failure with all reasons if the case cannot run, for example because the strategy needs something
// that the transport lacks. `kernels` is the record of chosen kernels, "" without tuning. [main]
prepared_run prepare(plugin_facts_cache& facts, const case_config& c, const std::string& kernels);

// Returns "needs about 900 MiB of memory on host n1, and 512 MiB are free" for the first host that has less than its
// ranks' share of `needed` bytes, which are for all ranks; "" if none has, as far as free memory is known. Names the
// host only if the ranks are on several. `hosts` is null without a launcher. [any]
std::string lack_of_memory(std::uint64_t needed, const prepared_run& run, const host_group* hosts);

// Returns the run of one process that times kernels for this case, with the batch of one worker. Its result has the
// member "kernels". Throws failure as prepare() does. [main]
prepared_run prepare_tuning(plugin_facts_cache& facts, const case_config& c);

// Returns the case as one worker on one host, without communication, evaluation or straggler, with the same
// train.batch: per worker with weak scaling, global with strong scaling.
case_config baseline_of(const case_config& c);
// Returns the case with the same number of workers, on one host, without communication, evaluation or straggler. It
// measures the cost of sharing the machine.
case_config contention_of(const case_config& c);
// Returns true if the case is one worker with strategy "none" itself, so that it needs no baseline.
bool is_baseline(const case_config& c);
// Returns true for several workers and a strategy other than "none". Only such a case has a contention control, and
// only if it has a baseline.
bool has_control(const case_config& c);
// Returns the different runs of one repeat: the case; then, with measure.baseline, its baseline (once, although a round
// runs it twice) and its contention control if it has them.
std::vector<case_config> runs_of(const case_config& c);

// Returns a text that is equal for cases that share a baseline: they differ at most in strategy, transport,
// data.evaluation_path, measure.evaluate_every, and the cluster's workers, servers, colocate, hosts and straggler.
std::string baseline_key(const case_config& c);
// Returns a text that two cases have in common only if they use the same kernels: same model, train.batch (under strong
// scaling also the same number of workers), train.batch_unit, micro-batches, precision, device, train.executor,
// train.isa, threads and `row_major`: whether the case's strategy has RG_PLAN_ROW_MAJOR.
std::string kernels_key(const case_config& c, bool row_major);

// Sets how long the ranks of a plan may make no progress, from the value of measure.timeout: a time such as "20s";
// "none": for ever, for debuggers; any other text, such as "auto", leaves the plan's limits. Does not check the text.
void set_timeout(launch_plan& plan, const std::string& timeout);

// Sets the limits of a plan from the case's measure.timeout. With a stream as data source, also raises the limit of
// rare operations, such as reading input, to at least twice data.timeout: with measure.timeout = "auto" the source's
// own message then comes first. A time in measure.timeout takes the place of this limit.
void set_limits(launch_plan& plan, const case_config& c);

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// Turns a case into the ranks that run it: checks that its parts fit together, and assigns roles and CPUs.
#pragma once

#include "campaign/answers.hpp"
#include "config/experiment.hpp"
#include "launch/launch.hpp"
#include "rank/job.hpp"

#include <optional>
#include <string>
#include <vector>

namespace regatta {

struct prepared_run {
  rank_job job; // the same for every rank
  std::vector<rank_plan> ranks;
  std::string address;
  bool exchanges_rows = false; // whether rows of sparse tables are exchanged over this transport
  bool synchronous = true;
  bool communicates = false;           // true if any two ranks ever exchange a message
  std::optional<std::string> launched; // file of a transport that needs an outside launcher's processes
  std::vector<std::string> warnings;
};

// Throws failure if the case cannot run: for example, the strategy needs something that the transport lacks, or the
// batch is not divisible. `kernels` is the choice that tuning made, "" without tuning.
prepared_run prepare(plugin_answers& answers, const case_config& c, const std::string& kernels);

// Prepares the process that times kernels for this case.
prepared_run prepare_tuning(plugin_answers& answers, const case_config& c);

// Returns the case as one worker without communication, with the same train.batch: per worker with weak scaling, global
// with strong scaling.
case_config baseline_of(const case_config& c);
// Returns the case with the same number of workers, without communication: the cost of sharing the machine.
case_config contention_of(const case_config& c);
bool is_baseline(const case_config& c);
// Returns true if a case with a baseline has a contention control, too.
bool has_control(const case_config& c);
// Returns all runs of one repeat: the case, then its baseline and its contention control if it has them.
std::vector<case_config> runs_of(const case_config& c);

// Equal for cases that may share a baseline: they differ only in strategy, transport, workers and servers.
std::string baseline_key(const case_config& c);
// Equal for runs that use the same kernels.
std::string kernels_key(const case_config& c);

} // namespace regatta

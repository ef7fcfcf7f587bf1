// SPDX-License-Identifier: Apache-2.0
//
// From a case to the ranks that run it: who takes part, whether the parts fit together, on which CPUs.
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
  bool exchanges_rows = false; // of sparse tables, over this transport
  bool synchronous = true;
  bool communicates = false;           // whether any two ranks ever exchange a message
  std::optional<std::string> launched; // the file of a transport that needs processes of an outside launcher
  std::vector<std::string> warnings;
};

// Throws failure where the case cannot be: a strategy without its needs met, a transport that connects nobody, a batch
// that does not divide. `kernels` is what tuning picked ("": none).
prepared_run prepare(plugin_answers& answers, const case_config& c, const std::string& kernels);

// The process that times kernels for this case.
prepared_run prepare_tuning(plugin_answers& answers, const case_config& c);

// One worker without communication on the same batch: per worker when scaling is weak, global when it is strong.
case_config baseline_of(const case_config& c);
// As many workers as the case, without communication: what the machine itself takes.
case_config contention_of(const case_config& c);
bool is_baseline(const case_config& c);
// Whether a case with a baseline is compared with a control as well.
bool has_control(const case_config& c);
// All that one repeat of the case takes: itself, then its baseline and its control, where it has them.
std::vector<case_config> runs_of(const case_config& c);

// Equal for cases that may share baselines: all but strategy, transport, workers and servers is the same.
std::string baseline_key(const case_config& c);
// Equal for runs that need the same kernels.
std::string kernels_key(const case_config& c);

} // namespace regatta

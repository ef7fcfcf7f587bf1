// SPDX-License-Identifier: Apache-2.0
//
// Text about a run without progress: what each rank does or waits for. The coordinator collects the reports.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "control/status_page.hpp"

namespace regatta {

struct rank_report {
  std::string name;                            // "rank 1 (worker 1, pid 4711)"
  rank_status status;                          // of its status page, readable even while it hangs
  std::chrono::steady_clock::duration still{}; // time since its last progress
  // The answer of its control thread to "describe" (control/client.cpp), with its pending operations as text and the
  // stacks of its threads; null: no answer.
  nlohmann::json state;
};

// Returns the reason for which a rank is blamed, without its name: "no progress for 20.0 s in step 0, forward pass: the
// call does not return: model.so+0x11f3".
std::string stall_cause(const rank_report& a);

// Returns lines, each with its newline. For each rank: its step and operation, whether it works or for whom it waits,
// and the time since its last progress; then, indented, its pending operations and its stacks.
std::string stall_report(const std::vector<rank_report>& ranks);

} // namespace regatta

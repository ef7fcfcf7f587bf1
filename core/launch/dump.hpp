// SPDX-License-Identifier: Apache-2.0
//
// Describes what each rank waits for in a run without progress.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "control/status_page.hpp"

namespace regatta {

struct rank_account {
  std::string name; // "rank 1 (worker 1, pid 4711)"
  rank_status status;
  std::chrono::steady_clock::duration still{}; // time since its last progress
  nlohmann::json state;                        // its answer to "describe" (control/client.cpp); null: no answer
};

// Returns the message about the blamed rank: "no progress for 20.0 s in step 0, forward pass: the call does not return:
// model.so+0x11f3".
std::string verdict_on(const rank_account& a);

// Returns lines, each with its newline: for each rank its operation, its pending operations, and its stacks.
std::string dump_of(const std::vector<rank_account>& ranks);

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// Describes which rank waits for what in a run that makes no progress.
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
  std::chrono::steady_clock::duration still{}; // since its last progress
  nlohmann::json state;                        // its answer to "describe" (control/client.cpp); null: none came
};

// Of the rank to blame: "no progress for 20.0 s in step 0, forward pass: its code does not return (model.so+0x11f3)".
std::string verdict_on(const rank_account& a);

// Lines, each with its newline: for each rank where it stands, what is open, and its stacks.
std::string dump_of(const std::vector<rank_account>& ranks);

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// Runs plugin code in a child process that answers with data. A crash, hang or exit() of a plugin becomes a failure in
// this process, which never runs plugin code itself.
#pragma once

#include "base/failure.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta {

// Called in the child before each piece of plugin code, for the error message of a crash. `who` names the plugin, such
// as "model mlp (FILE)", or is empty if the reader knows it; `doing` names the phase: "was being loaded".
using stage_function = std::function<void(const std::string& who, const std::string& doing)>;

struct ask_options {
  // Longest time for one answer; a plugin that takes longer is taken for hung.
  std::chrono::milliseconds patience = default_patience();
  // Polled every 50 ms. True ends the child; all answers that are still missing fail with exit_code::interrupted.
  std::function<bool()> interrupted;

  static std::chrono::milliseconds default_patience(); // 10 s, more under a sanitizer
};

struct answer {
  nlohmann::json value;
  std::optional<failure> failed; // the exception that the work threw, or how its child ended (exit_code::plugin)
};

// Returns work(0) .. work(count - 1), all computed in one forked child. If the child ends early, another one continues
// with the next item; if none can be started, the items left fail with exit_code::run. Standard output of the child is
// dropped; the end of its standard error becomes part of the message about a crash. Requires that this process has no
// other threads: the child does not have them, and locks that they hold stay locked. [main]
std::vector<answer> ask_all(std::size_t count,
                            const std::function<nlohmann::json(std::size_t, const stage_function&)>& work,
                            const ask_options& options = {});

// Returns the answer of one item; throws its failure.
nlohmann::json ask(const std::function<nlohmann::json(const stage_function&)>& work, const ask_options& options = {});

} // namespace regatta

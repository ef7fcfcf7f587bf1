// SPDX-License-Identifier: Apache-2.0
//
// Runs code of plugins in a child process that answers with data. A crash, a hang or an exit() of a plugin becomes a
// failure here; this process never runs it.
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

// Called in the child before each piece of a plugin's code, for the text of a crash: `who` is whose code it is, such as
// "model mlp (FILE)", or empty where the reader knows; `doing` says how far it is: "was being loaded".
using stage_function = std::function<void(const std::string& who, const std::string& doing)>;

struct ask_options {
  // For one answer. A plugin that takes longer hangs.
  std::chrono::milliseconds patience = default_patience();
  // Looked at every 50 ms; true ends the child, and what is not answered fails with exit_code::interrupted.
  std::function<bool()> interrupted;

  static std::chrono::milliseconds default_patience(); // 10 s, more under a sanitizer
};

struct answer {
  nlohmann::json value;
  std::optional<failure> failed; // what the work threw, or how its child ended (exit_code::plugin)
};

// Returns work(0) .. work(count - 1), all asked in one forked child, which is replaced by another one when it ends
// before its time. The child's output goes nowhere, but the end of what it wrote to standard error becomes part of a
// crash's text. Requires that this process has no other threads: the child has none of them, and locks that they hold
// stay locked. [main]
std::vector<answer> ask_all(std::size_t count,
                            const std::function<nlohmann::json(std::size_t, const stage_function&)>& work,
                            const ask_options& options = {});

// The answer to one question. Throws its failure.
nlohmann::json ask(const std::function<nlohmann::json(const stage_function&)>& work, const ask_options& options = {});

} // namespace regatta

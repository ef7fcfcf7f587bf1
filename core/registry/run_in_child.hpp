// SPDX-License-Identifier: Apache-2.0
//
// Runs plugin code in a forked child process, and brings its answers back as JSON. A crash, hang or exit() of a plugin
// becomes a failure in the calling process, which goes on.
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

// The work calls it before each use of plugin code, for the message about a crash or hang there: "WHO was killed by
// SIGSEGV while it DOING". `who` names the plugin, such as "model mlp (FILE)", and is empty if the caller's message
// names it. `doing` is a phrase such as "was being loaded".
using stage_function = std::function<void(const std::string& who, const std::string& doing)>;

struct child_options {
  // Longest time for one answer; after it the child is killed, and the answer is a failure.
  std::chrono::milliseconds limit = default_limit();
  // Polled every 50 ms in the calling process; may be empty. Once it returns true, the child is killed, and all answers
  // that are still missing fail with exit_code::interrupted.
  std::function<bool()> interrupted;

  static std::chrono::milliseconds default_limit(); // 10 s, more under a sanitizer
};

struct child_result {
  nlohmann::json value;
  // The failure that the work threw; or failure: plugin for another exception, or for the end or hang of the child; run
  // if no child could be started; interrupted.
  std::optional<failure> failed;
};

// [main] Returns work(0) .. work(count - 1), all computed in one forked child: the caller sees no changes that the work
// makes to memory. If the child ends early or hangs, the current item fails, and another child continues with the next
// item; if no other child can be started, the remaining items fail with exit_code::run. Standard output of the child is
// dropped; the end of its standard error becomes part of the message about a crash. Requires that this process has no
// other threads: the child does not have them, and locks that they hold stay locked.
std::vector<child_result>
run_all_in_child(std::size_t count, const std::function<nlohmann::json(std::size_t, const stage_function&)>& work,
                 const child_options& options = {});

// [main] As run_all_in_child() for one item. Returns its value, or throws its failure.
nlohmann::json run_in_child(const std::function<nlohmann::json(const stage_function&)>& work,
                            const child_options& options = {});

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// Runs tests of the suite one after the other, each in its own process. Damage by a plugin (memory, signals, a hang)
// fails only that test, and a test finds no leftovers of another one.
#pragma once

#include "check/suite.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace regatta::conformance {

enum class outcome { passed, failed, skipped };
const char* name_of(outcome o) noexcept; // "passed"

struct verdict {
  outcome what = outcome::passed;
  std::string came; // the result in place of the expected one, or why it was skipped
  double seconds = 0;
  bool hung = false;                  // it failed because an operation did not end
  std::vector<std::string> remarks{}; // from remark()
};

// Runs the test in this process. Never throws.
verdict run_here(const test& t, const subject& s);

// Returns the arguments of `regatta` for a process that runs only this test and reports it (report_to_parent).
std::vector<std::string> arguments_for(const test& t, const subject& s);

// Runs the test in its own process. Kills that process, and all that it has forked, if no call of the plugin returns
// for silence_of(s). Throws failure if the process cannot be started.
verdict run_apart(const test& t, const subject& s);

// Returns how long a call of this plugin may take. Steps of large models take seconds.
std::chrono::seconds silence_of(const subject& s);

// For a process that runs one test: reserves standard output for the report and for pulse(), and redirects output of
// the plugin to standard error. Construct it before any plugin code runs.
class report_to_parent {
public:
  report_to_parent();
  void send(const verdict& v) const;

private:
  int to_ = -1;
};

} // namespace regatta::conformance

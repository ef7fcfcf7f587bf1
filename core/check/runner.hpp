// SPDX-License-Identifier: Apache-2.0
//
// Runs tests of the suite one after the other, each in a process of its own: what a plugin breaks there (memory,
// signals, a hang) is one test's failure, and no test sees what another one left.
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
  std::string came; // what came instead, or why it was skipped
  double seconds = 0;
  bool hung = false;                  // it failed because something did not end
  std::vector<std::string> remarks{}; // of the test, see remark()
};

// Runs the test here. Never throws.
verdict run_here(const test& t, const subject& s);

// The arguments of `regatta` that make a process run just this test and report it (report_to_parent).
std::vector<std::string> arguments_for(const test& t, const subject& s);

// Runs the test in a process of its own, which is killed, with all that it has forked, when no call of the plugin has come
// back for silence_of(s). Throws failure if none can be started.
verdict run_apart(const test& t, const subject& s);

// How long a call of this plugin may take. Steps of large models take seconds.
std::chrono::seconds silence_of(const subject& s);

// In such a process: keeps standard output for the report and for pulse(), so that whatever the plugin prints goes to
// standard error.
// Call it before anything of the plugin runs.
class report_to_parent {
public:
  report_to_parent();
  void send(const verdict& v) const;

private:
  int to_ = -1;
};

} // namespace regatta::conformance

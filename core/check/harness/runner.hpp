// SPDX-License-Identifier: Apache-2.0
//
// Runs tests of the suite one after the other, each in its own process. Damage by a plugin (memory, signals, a hang)
// fails only that test, and does not reach the next one.
#pragma once

#include "check/harness/suite.hpp"

#include <cstdio>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta::conformance {

enum class outcome { passed, failed, skipped };
// As JSON: its name. Other texts become `failed`.
NLOHMANN_JSON_SERIALIZE_ENUM(outcome,
                             {{outcome::failed, "failed"}, {outcome::passed, "passed"}, {outcome::skipped, "skipped"}})

struct verdict {
  outcome result = outcome::passed;
  std::string message; // one line: why it failed or was skipped; empty if it passed
  double seconds = 0;
  bool hung = false;                  // it failed because an operation or a call of the plugin did not end
  std::vector<std::string> remarks{}; // from remark()
  // The last 64 KiB of its process's standard output and error, unchanged; if there was more, a line before them says
  // how many bytes are left out. Only run_in_child() sets it; not in the JSON.
  std::string output{};
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(verdict, result, message, seconds, hung, remarks)

// Runs the test in this process and keeps its remarks. An exception of the test becomes the verdict: `skipped`, and
// failure with exit code skipped, become outcome::skipped, anything else outcome::failed. [main]
verdict run_in_process(const test& t, const subject& s);

// Runs the test in its own process, with the allocation counter preloaded. Kills that process, and all that it has
// forked, if a call of the plugin takes too long (hang_watch): 15 s, or 60 s for models and executors, because steps of
// large models take seconds; more under a sanitizer. The verdict is then `failed`, and also if the process ends without
// a report. Throws failure (run) if the process cannot be started. [main]
verdict run_in_child(const test& t, const subject& s);

// For a process that runs one test: reserves standard output for the report and for report_progress(), and redirects
// output of the plugin to standard error. Create it once, before any plugin code runs.
class report_to_parent {
public:
  // Throws failure (run) if `output`, the program's standard output, is not open.
  explicit report_to_parent(std::FILE* output);
  // Writes the verdict as a line of JSON. Does nothing if the parent has closed the pipe.
  void send(const verdict& v) const;

private:
  int to_ = -1;
};

} // namespace regatta::conformance

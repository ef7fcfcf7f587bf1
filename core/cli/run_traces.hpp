// SPDX-License-Identifier: Apache-2.0
//
// Files of traces beside the result: one for each run (docs/trace.md).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "clocks/clock_course.hpp"

namespace regatta {

// [main]
class run_traces {
public:
  // Makes no folder before the first trace.
  explicit run_traces(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Later traces are of this run: "case-1-repeat-2" becomes FOLDER/case-1-repeat-2.pftrace.gz.
  void begin(const std::string& run) { run_ = run; }
  // Takes the member "trace" of each rank's result, and writes the file if there are any, with all times on one clock.
  // `hosts` are those of a launcher, which the member "host" of the results names; empty: all ranks run on this host.
  // Returns warnings: events were dropped, or the file cannot be written. Does not throw for errors of files.
  std::vector<std::string> take(std::vector<nlohmann::json>& ranks, const std::vector<timed_host>& hosts) const;

private:
  std::filesystem::path folder_;
  std::string run_;
};

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "check/harness/runner.hpp"

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta {

// The document of `regatta check` (schema regatta.check/1), and the files of --report. The files always hold the whole
// document: they are written before the first test and after each one, so that they name the tests that did not run if
// the program is interrupted or crashes. [main]
class check_report {
public:
  // Throws failure (usage) if the name of a file says no format.
  static void require_formats(const std::vector<std::string>& files);

  // Begins with all of the document but its tests and results. Requires require_formats(files).
  check_report(nlohmann::ordered_json head, std::vector<std::string> files);

  // Adds what is tested, a component or the shared object itself, with its tests in the order in which they will run.
  // `about`: all of its members but "tests".
  void plan(nlohmann::ordered_json about, const std::vector<conformance::test>& tests);
  // Writes the files. Call it after all plan(). Throws as record().
  void begin();
  // Records the verdict of the next test, and writes the files. `rerun`: the command that repeats the test, kept if it
  // failed. Throws failure: run, with the path, if a file cannot be written; interrupted if a signal came while files
  // were written.
  void record(const conformance::verdict& v, const std::string& rerun);
  // Records that all tests of a component's behaviour were skipped, and writes the files. Throws as record().
  void record_untested(const std::string& component_and_reason);

  bool has_tests() const { return !places_.empty(); }
  // Returns the number of tests with this status: "passed", "failed", "skipped" or "not_run".
  std::uint64_t count(const char* status) const { return document_.at(status).get<std::uint64_t>(); }
  const nlohmann::ordered_json& document() const { return document_; }

private:
  void write();
  nlohmann::ordered_json& entry(std::size_t index); // of a test, in the order of plan()

  nlohmann::ordered_json document_;
  std::vector<std::string> files_;
  std::vector<std::pair<std::size_t, std::size_t>> places_; // subject and test, of all tests
  std::size_t next_ = 0;                                    // in `places_`: the first test without a verdict
};

} // namespace regatta

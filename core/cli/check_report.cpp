// SPDX-License-Identifier: Apache-2.0
#include "cli/check_report.hpp"

#include "base/failure.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "check/report/report.hpp"
#include "files/write_atomically.hpp"
#include "launch/interruption.hpp"

#include <fmt/format.h>

namespace regatta {

using nlohmann::ordered_json;

void check_report::require_formats(const std::vector<std::string>& files) {
  for (const std::string& file : files)
    if (!conformance::has_report_format(file))
      throw failure(exit_code::usage,
                    fmt::format("--report {}: expected a file name that ends in .html, .json, .xml or .junit (JUnit)",
                                one_line(file)));
}

check_report::check_report(ordered_json head, std::vector<std::string> files)
    : document_(std::move(head)), files_(std::move(files)) {
  document_["subjects"] = ordered_json::array();
  for (const char* status : {"passed", "failed", "skipped", "not_run"}) document_[status] = 0;
  document_["untested"] = ordered_json::array();
  document_["verdict"] = "unfinished";
}

void check_report::plan(ordered_json about, const std::vector<conformance::test>& tests) {
  about["tests"] = ordered_json::array();
  for (const conformance::test& t : tests) {
    places_.emplace_back(document_["subjects"].size(), about["tests"].size());
    about["tests"].push_back({{"name", t.name},
                              {"expected", t.expected},
                              {"status", "not_run"},
                              {"message", "it had not begun when this report was written"},
                              {"seconds", 0.0},
                              {"remarks", ordered_json::array()},
                              {"output", nullptr},
                              {"rerun", nullptr}});
  }
  document_["subjects"].push_back(std::move(about));
}

ordered_json& check_report::entry(std::size_t index) {
  return document_["subjects"][places_[index].first]["tests"][places_[index].second];
}

void check_report::begin() {
  document_["not_run"] = places_.size();
  write();
}

void check_report::record(const conformance::verdict& v, const std::string& rerun) {
  ordered_json& test = entry(next_++);
  const ordered_json status = v.result;
  test["status"] = status;
  test["message"] = ordered_json(text_or_null(v.message));
  test["seconds"] = v.seconds;
  test["remarks"] = v.remarks;
  test["output"] = ordered_json(text_or_null(v.output));
  if (v.result == conformance::outcome::failed) test["rerun"] = rerun;
  document_[status.get<std::string>()] = count(status.get<std::string>().c_str()) + 1;
  document_["not_run"] = places_.size() - next_;
  write();
}

void check_report::record_untested(const std::string& component_and_reason) {
  document_["untested"].push_back(component_and_reason);
  write();
}

void check_report::write() {
  if (next_ < places_.size()) entry(next_)["message"] = "it had not ended when this report was written";
  document_["verdict"] = count("not_run")                ? "unfinished"
                         : count("failed")               ? "failed"
                         : document_["untested"].empty() ? "passed"
                                                         : "untested";
  const interruption deferred; // a signal within it would leave a temporary file behind
  for (const std::string& file : files_) write_atomically(file, conformance::report_text(file, document_));
  if (deferred.requested()) throw failure(exit_code::interrupted, "interrupted");
}

} // namespace regatta

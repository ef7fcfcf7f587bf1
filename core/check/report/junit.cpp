// SPDX-License-Identifier: Apache-2.0
//
// The elements and attributes that Jenkins, GitLab and GitHub's actions read. CI systems group tests by `classname`.
#include "check/report/report.hpp"

#include "files/markup.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace regatta::conformance {
namespace {

using nlohmann::ordered_json;

class junit_writer {
public:
  explicit junit_writer(const ordered_json& document) : document_(document) {}

  std::string text() {
    out_ = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    const totals all = totals_of(document_.at("subjects"));
    out_ += fmt::format("<testsuites name=\"regatta check\" {}>\n", attributes(all));
    for (const ordered_json& subject : document_.at("subjects"))
      if (!subject.at("tests").empty()) suite(subject);
    return out_ + "</testsuites>\n";
  }

private:
  struct totals {
    std::size_t tests = 0, failures = 0, errors = 0, skipped = 0;
    double seconds = 0;
  };

  static totals totals_of(const ordered_json& subjects) {
    totals t;
    for (const ordered_json& subject : subjects)
      for (const ordered_json& test : subject.at("tests")) {
        const auto& status = test.at("status").get_ref<const std::string&>();
        ++t.tests;
        t.failures += status == "failed";
        t.errors += status == "not_run";
        t.skipped += status == "skipped";
        t.seconds += test.at("seconds").get<double>();
      }
    return t;
  }

  static std::string attributes(const totals& t) {
    return fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{:.3f}\"", t.tests, t.failures,
                       t.errors, t.skipped, t.seconds);
  }

  void suite(const ordered_json& subject) {
    const ordered_json& context = document_.at("context");
    const ordered_json& host = context.at("hosts").at(0).at("name");
    const auto kind = subject.at("kind").get<std::string>();
    const std::string id = subject.contains("id") ? subject.at("id").get<std::string>() : "";
    std::string date = context.at("date");
    if (date.ends_with('Z')) date.pop_back(); // the schema of Ant and Jenkins allows no time zone
    out_ += fmt::format("  <testsuite name=\"{}\" {} timestamp=\"{}\" hostname=\"{}\">\n    <properties>\n",
                        markup_text(id.empty() ? kind : kind + " " + id),
                        attributes(totals_of(ordered_json::array({subject}))), markup_text(date),
                        host.is_string() ? markup_text(host.get<std::string>()) : "");
    for (const char* name : {"file", "sha256", "seed"}) property(name, document_.at(name));
    for (const char* name : {"regatta", "abi", "command"}) property(name, context.at(name));
    for (const char* name : {"version", "parameters", "capabilities"})
      if (subject.contains(name)) property(name, subject.at(name));
    out_ += "    </properties>\n";
    for (const ordered_json& test : subject.at("tests"))
      test_case("regatta." + kind + (id.empty() ? "" : "." + id), test);
    out_ += "  </testsuite>\n";
  }

  void property(const char* name, const ordered_json& value) {
    const std::string text = value.is_string() ? value.get<std::string>()
                                               : value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
    out_ += fmt::format("      <property name=\"{}\" value=\"{}\"/>\n", name, markup_text(text));
  }

  void test_case(const std::string& of, const ordered_json& test) {
    const auto& status = test.at("status").get_ref<const std::string&>();
    out_ += fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3f}\">\n", markup_text(of),
                        markup_text(test.at("name").get<std::string>()), test.at("seconds").get<double>());
    const std::string message =
        test.at("message").is_string() ? markup_text(test.at("message").get<std::string>()) : "";
    if (status == "skipped") out_ += fmt::format("      <skipped message=\"{}\"/>\n", message);
    if (status == "not_run") out_ += fmt::format("      <error type=\"not_run\" message=\"{}\"/>\n", message);
    if (status == "failed")
      out_ += fmt::format("      <failure type=\"conformance\" message=\"{}\">expected: {}\nactual: {}\nrerun: {}"
                          "</failure>\n",
                          message, markup_text(test.at("expected").get<std::string>()), message,
                          markup_text(test.at("rerun").get<std::string>()));
    std::string lines;
    for (const ordered_json& remark : test.at("remarks")) lines += remark.get<std::string>() + "\n";
    if (test.at("output").is_string()) lines += test.at("output").get<std::string>();
    if (!lines.empty()) out_ += fmt::format("      <system-out>{}</system-out>\n", markup_text(lines));
    out_ += "    </testcase>\n";
  }

  const ordered_json& document_;
  std::string out_;
};

} // namespace

std::string junit_report(const ordered_json& document) {
  return junit_writer(document).text();
}

} // namespace regatta::conformance

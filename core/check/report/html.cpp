// SPDX-License-Identifier: Apache-2.0
#include "check/report/report.hpp"

#include "base/text.hpp"
#include "files/markup.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace regatta::conformance {
namespace {

using nlohmann::ordered_json;

// Output of a test scrolls on a screen and is complete on paper.
constexpr const char* report_style = R"(
:root { color-scheme: light dark; --text: #1b1f24; --page: #fff; --line: #d0d7de; --soft: #f3f5f7; --dim: #57606a;
        --passed: #116329; --failed: #b3141c; --skipped: #6b4e00; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6edf3; --page: #0f1318; --line: #3a424c; --soft: #1a2028; --dim: #9aa5b1;
          --passed: #57c974; --failed: #ff7b72; --skipped: #e3b341; } }
body { color: var(--text); background: var(--page); font: 15px/1.45 system-ui, sans-serif; max-width: 68rem;
       margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 .4rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .7rem .3rem 0; border-bottom: 1px solid var(--line);
         overflow-wrap: anywhere; }
th { font-weight: 600; } thead th { color: var(--dim); }
table.facts th { width: 13rem; font-weight: normal; color: var(--dim); }
td.number { text-align: right; white-space: nowrap; } td.name { white-space: nowrap; font-family: monospace; }
pre { background: var(--soft); padding: .5rem .7rem; margin: .3rem 0; overflow: auto; max-height: 24rem;
      white-space: pre-wrap; overflow-wrap: anywhere; font-size: .85rem; }
p { margin: .3rem 0; } .label { color: var(--dim); } .verdict { font-size: 1.1rem; font-weight: 600; }
.passed { color: var(--passed); } .failed { color: var(--failed); } .skipped, .not_run { color: var(--skipped); }
td.passed, td.failed, td.skipped, td.not_run { font-weight: 600; white-space: nowrap; }
@media print {
  :root { --text: #000; --page: #fff; --line: #999; --soft: #fff; --dim: #333;
          --passed: #000; --failed: #000; --skipped: #000; }
  body { max-width: none; margin: 0; font-size: 10pt; } pre { max-height: none; border: 1px solid var(--line); }
  tr { break-inside: avoid; } h2, h3 { break-after: avoid; } }
)";

class html_writer {
public:
  explicit html_writer(const ordered_json& document) : document_(document) {}

  std::string text() {
    const std::string title = "Conformance of " + tested();
    out_ = fmt::format("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
                       "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
                       "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n<h1>{}</h1>\n",
                       title, report_style, title);
    verdict();
    run();
    machine();
    for (std::size_t i = 0; i < subjects().size(); ++i)
      if (!subjects()[i].at("tests").empty()) subject(i);
    return out_ + "</body>\n</html>\n";
  }

private:
  const ordered_json& subjects() const { return document_.at("subjects"); }

  static std::string title_of(const ordered_json& subject) {
    const auto kind = subject.at("kind").get<std::string>();
    return subject.contains("id") ? markup_text(kind + " " + subject.at("id").get<std::string>()) : "the file";
  }

  // Returns the components; the file's name if it has none.
  std::string tested() const {
    std::vector<std::string> names;
    for (const ordered_json& one : subjects())
      if (one.contains("id")) names.push_back(title_of(one));
    return names.empty() ? markup_text(document_.at("file").get<std::string>()) : join(names);
  }

  static std::string name_of_status(const std::string& status) { return status == "not_run" ? "not run" : status; }

  static std::string anchor(std::size_t subject, const ordered_json& test) {
    return fmt::format("{}-{}", subject, markup_text(test.at("name").get<std::string>()));
  }

  // Returns the links to the tests with this status.
  std::string links(const std::string& status) const {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < subjects().size(); ++i)
      for (const ordered_json& test : subjects()[i].at("tests"))
        if (test.at("status") == status)
          all.push_back(
              fmt::format("<a href=\"#{}\">{}</a>", anchor(i, test), markup_text(test.at("name").get<std::string>())));
    return join(all);
  }

  void verdict() {
    const auto& verdict = document_.at("verdict").get_ref<const std::string&>();
    const char* const sentence = verdict == "passed"   ? "Passed: no test failed."
                                 : verdict == "failed" ? "Failed: at least one test failed."
                                 : verdict == "untested"
                                     ? "Untested: nothing failed, but all tests of the behaviour of "
                                       "a component were skipped."
                                     : "Unfinished: some tests had not run when this report was "
                                       "written.";
    const char* const colour = verdict == "passed" || verdict == "failed" ? verdict.c_str() : "skipped";
    out_ += fmt::format("<p class=\"verdict {}\">{}</p>\n<p>{} passed, {} failed, {} skipped", colour, sentence,
                        number("passed"), number("failed"), number("skipped"));
    if (number("not_run")) out_ += fmt::format(", {} not run", number("not_run"));
    out_ += "</p>\n";
    for (const char* status : {"failed", "not_run"})
      if (const std::string which = links(status); !which.empty())
        out_ += fmt::format("<p><span class=\"label\">{}:</span> {}</p>\n", name_of_status(status), which);
    for (const ordered_json& one : document_.at("untested"))
      out_ += fmt::format("<p>nothing was tested of {}</p>\n", markup_text(one.get<std::string>()));
  }

  std::uint64_t number(const char* member) const { return document_.at(member).get<std::uint64_t>(); }

  // --- facts: tables of a name and a value

  // Returns the value in words; empty if it is unknown.
  static std::string words(const ordered_json& value) {
    if (value.is_null()) return "";
    if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
    if (value.is_string()) return markup_text(value.get<std::string>());
    if (!value.is_array()) return markup_text(value.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
    std::vector<std::string> items;
    for (const ordered_json& item : value) items.push_back(words(item));
    return items.empty() ? "none" : join(items);
  }

  void fact(std::string name, const ordered_json& value) {
    if (value.is_null()) return;
    std::replace(name.begin(), name.end(), '_', ' ');
    out_ += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", markup_text(name), words(value));
  }

  void begin_facts(const char* heading) { out_ += fmt::format("<h2>{}</h2>\n<table class=\"facts\">\n", heading); }
  void end_facts() { out_ += "</table>\n"; }

  void run() {
    const ordered_json& context = document_.at("context");
    begin_facts("Run");
    fact("file", document_.at("file"));
    fact("SHA-256 of the file", document_.at("sha256"));
    fact("command", context.at("command"));
    fact("seed", document_.at("seed"));
    if (!document_.at("only").empty()) fact("only tests named", document_.at("only"));
    if (document_.at("quick").get<bool>()) fact("left out", "tests that need gigabytes of memory (--quick)");
    fact("began (UTC)", context.at("date"));
    fact("regatta", context.at("regatta"));
    fact("sources of regatta (git)", context.at("git"));
    fact("build of regatta", context.at("build"));
    fact("plugin interface (ABI)", context.at("abi"));
    for (const ordered_json& other : context.at("plugins"))
      if (other.at("path") != document_.at("file"))
        fact("other plugin that tests may load",
             fmt::format("{} {} {}, {}, SHA-256 {}", text_in(other, "kind"), text_in(other, "id"),
                         text_in(other, "version"), text_in(other, "path"), text_in(other, "sha256")));
    end_facts();
  }

  static std::string text_in(const ordered_json& object, const char* member) {
    return object.at(member).get<std::string>();
  }

  void machine() {
    const ordered_json& host = document_.at("context").at("hosts").at(0);
    begin_facts("Machine");
    for (const char* name : {"name", "cpu", "cores"}) fact(name, host.at(name));
    if (host.at("memory_bytes").is_number())
      fact("memory", fmt::format("{:.1f} GiB", host.at("memory_bytes").get<double>() / (1 << 30)));
    fact("CPU limit of the cgroup", host.at("cgroup_cpus"));
    fact("GPUs", host.at("gpus"));
    fact("kernel", host.at("kernel"));
    for (const auto& [name, version] : host.at("libraries").items()) fact(name + " of regatta", version);
    end_facts();
  }

  // --- a component, or the file

  void subject(std::size_t index) {
    const ordered_json& s = subjects()[index];
    out_ += fmt::format("<h2>Tests of {}</h2>\n", title_of(s));
    if (s.contains("id")) declared(s);
    out_ += "<table>\n<thead><tr><th>outcome</th><th>test</th><th>what the interface requires</th>"
            "<th>seconds</th></tr></thead>\n<tbody>\n";
    for (const ordered_json& one : s.at("tests")) test(index, one);
    out_ += "</tbody>\n</table>\n";
    if (s.contains("network")) network(s.at("network"));
  }

  void declared(const ordered_json& s) {
    out_ += "<table class=\"facts\">\n";
    fact("plugin", fmt::format("{} {}", text_in(s, "plugin"), text_in(s, "version")));
    for (const auto& [name, value] : s.at("parameters").items()) fact("parameter " + name, value);
    for (const auto& [name, value] : s.at("capabilities").items()) fact(name, value);
    if (s.contains("unavailable")) fact("capabilities are unknown", s.at("unavailable"));
    end_facts();
  }

  void test(std::size_t subject, const ordered_json& t) {
    const auto& status = t.at("status").get_ref<const std::string&>();
    const bool ran = status == "passed" || status == "failed";
    out_ += fmt::format("<tr id=\"{}\"><td class=\"{}\">{}</td><td class=\"name\">{}</td><td>{}", anchor(subject, t),
                        status, name_of_status(status), words(t.at("name")), words(t.at("expected")));
    if (status == "failed") {
      labelled("actual", words(t.at("message")));
      labelled("repeat it with", fmt::format("<code>{}</code>", words(t.at("rerun"))));
    } else if (t.at("message").is_string()) {
      labelled(status == "skipped" ? "skipped because" : "not run", words(t.at("message")));
    }
    for (const ordered_json& remark : t.at("remarks")) labelled("remark", words(remark));
    if (t.at("output").is_string()) {
      labelled("the test's process printed", "");
      out_ += fmt::format("<pre>{}</pre>", words(t.at("output")));
    }
    out_ += fmt::format("</td><td class=\"number\">{}</td></tr>\n",
                        ran ? fmt::format("{:.2f}", t.at("seconds").get<double>()) : "");
  }

  void labelled(const char* label, const std::string& text) {
    out_ += fmt::format("<p><span class=\"label\">{}:</span> {}</p>", label, text);
  }

  void network(const ordered_json& n) {
    out_ += "<h3>Network</h3>\n<table class=\"facts\">\n";
    for (const char* name : {"unit", "parameters", "state", "operations_per_sample"}) fact(name, n.at(name));
    for (const ordered_json& table : n.at("tables"))
      fact(fmt::format("sparse table \"{}\"", text_in(table, "name")),
           fmt::format("{} rows, {} parameters", words(table.at("rows")), words(table.at("parameters"))));
    end_facts();
    if (n.at("layers").empty()) return;
    out_ +=
        "<table>\n<thead><tr><th>layer</th><th>op</th><th>output of a sample</th><th>parameters</th></tr></thead>\n";
    for (const ordered_json& layer : n.at("layers"))
      out_ +=
          fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td class=\"number\">{}</td></tr>\n",
                      words(layer.at("name")), words(layer.at("op")),
                      layer.at("shape").empty() ? "a number" : words(layer.at("shape")), words(layer.at("parameters")));
    out_ += "</table>\n";
  }

  const ordered_json& document_;
  std::string out_;
};

} // namespace

std::string html_report(const ordered_json& document) {
  return html_writer(document).text();
}

} // namespace regatta::conformance

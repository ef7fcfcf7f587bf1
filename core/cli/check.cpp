// SPDX-License-Identifier: Apache-2.0
#include "cli/check.hpp"

#include "base/failure.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "check/harness/rank_group.hpp"
#include "check/harness/runner.hpp"
#include "check/harness/suite.hpp"
#include "check/model/reference.hpp"
#include "cli/check_report.hpp"
#include "cli/describe.hpp"
#include "cli/indented_table.hpp"
#include "cli/launcher_ranks.hpp"
#include "cli/plugin_folders.hpp"
#include "cli/set_option.hpp"
#include "cli/standard_output.hpp"
#include "join/environment.hpp"
#include "launch/cpus.hpp"
#include "machine/host.hpp"
#include "registry/registry.hpp"
#include "report/context.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include <fmt/format.h>
#include <fnmatch.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace regatta {
namespace {

namespace fs = std::filesystem;
using namespace conformance;
using nlohmann::ordered_json;

// Splits KIND/ID; nullopt if `text` is something else.
std::optional<std::pair<kind, std::string>> component_name(const std::string& text) {
  const auto slash = text.find('/');
  const auto k = kind_of(std::string_view(text).substr(0, slash));
  if (slash == std::string::npos || !k) return std::nullopt;
  return std::pair(*k, text.substr(slash + 1));
}

// Returns true if the tests of `c` may need `other`: a graph needs an executor, a transport may nest another one.
bool may_need(const component& c, const component& other) {
  if (c.kind == kind::transport) return other.kind == kind::transport && other.id != c.id;
  return c.kind == kind::model && c.is_graph && other.kind == kind::executor;
}

// The file under test and its components.
struct target {
  std::unique_ptr<registry> plugins;
  fs::path file;
  std::vector<subject> subjects; // the file itself first
};

target load_target(const check_options& o) {
  const registry around(plugin_folders(o.plugin_path));
  const auto name = component_name(o.target);
  const bool is_file = !name || fs::is_regular_file(o.target);
  target t;
  if (!is_file)
    t.file = around.find(name->first, name->second).file;
  else if (fs::is_regular_file(o.target))
    t.file = fs::canonical(o.target);
  else
    throw failure(exit_code::plugin, fmt::format("{}: expected a plugin file, or KIND/ID with KIND model, executor, "
                                                 "transport or strategy; no such file exists",
                                                 one_line(o.target)));
  const registry own = registry::of_files({t.file}, trust::untried);
  for (const unusable& u : own.failures())
    throw failure(exit_code::plugin, fmt::format("{}: {}", u.file.string(), u.reason));

  // Other plugins that the tests may need. The component under test takes precedence over others with its id.
  std::vector<fs::path> files = {t.file};
  const auto is_own = [&](const component& other) {
    return std::any_of(own.components().begin(), own.components().end(),
                       [&](const component& c) { return c.kind == other.kind && c.id == other.id; });
  };
  for (const component& other : around.components())
    if (!is_own(other) && std::find(files.begin(), files.end(), other.file) == files.end() &&
        std::any_of(own.components().begin(), own.components().end(),
                    [&](const component& c) { return may_need(c, other); }))
      files.push_back(other.file);
  // Tests load the files in processes of their own. This process loads them if tests run in it (--in-process, or under
  // a launcher).
  const bool here = o.in_process || find_launcher(process_environment());
  t.plugins = std::make_unique<registry>(registry::of_files(files, here ? trust::tried : trust::untried));

  subject of_file;
  of_file.file = t.file;
  of_file.seed = o.seed;
  t.subjects.push_back(of_file);
  for (const component& c : t.plugins->components()) {
    if (c.file != t.file || (!is_file && (c.kind != name->first || c.id != name->second))) continue;
    subject s = of_file;
    s.plugins = t.plugins.get();
    s.tested = &c;
    s.parameters = read_set(o.set);
    if (!o.reference.empty()) s.reference = fs::absolute(o.reference);
    if (!o.write_reference.empty()) s.write_to = fs::absolute(o.write_reference);
    s.other_files.assign(files.begin() + 1, files.end());
    (void)parameter_values(c, s.parameters); // throws if they do not fit the table
    t.subjects.push_back(s);
  }
  return t;
}

bool wanted(const check_options& o, const test& t) {
  if (o.quick && t.large) return false;
  return o.only.empty() || std::any_of(o.only.begin(), o.only.end(), [&](const std::string& pattern) {
           return fnmatch(pattern.c_str(), t.name, 0) == 0;
         });
}

// Returns the tests that the options choose.
std::vector<test> tests_for(const subject& s, const check_options& o) {
  if (!s.write_to.empty()) return {write_reference_test()};
  std::vector<test> all = tests_of(s);
  std::erase_if(all, [&](const test& one) { return !wanted(o, one); });
  return all;
}

std::string title_of(const subject& s) {
  return s.tested ? fmt::format("{} {}", name_of(s.tested->kind), s.tested->id) : s.file.string();
}

// Returns the command that runs this test again in one process, for a debugger.
std::string rerun_command(const check_options& o, const subject& s, const test& t) {
  std::vector<std::string> words = {"regatta", "check", o.target, "--only", t.name, "--seed", fmt::to_string(s.seed)};
  for (const std::string& set : o.set) words.insert(words.end(), {"--set", set});
  for (const std::string& path : o.plugin_path) words.insert(words.end(), {"--plugin-path", path});
  if (!o.reference.empty()) words.insert(words.end(), {"--reference", o.reference});
  words.emplace_back("--in-process");
  const std::string line = command_line(words);
  return s.launcher_ranks ? fmt::format("{} {} {}", s.tested->launcher, s.launcher_ranks, line) : line;
}

int list(const target& t, const check_options& o) {
  ordered_json out = ordered_json::array();
  std::vector<std::vector<std::string>> rows;
  for (const subject& s : t.subjects)
    for (const test& one : tests_for(s, o)) {
      out.push_back({{"of", title_of(s)}, {"name", one.name}, {"expected", one.expected}, {"large", one.large}});
      rows.push_back({one.name, s.tested ? title_of(s) : "file", one.expected});
    }
  if (o.json)
    print_output(document_text(out));
  else
    print_output(indented({{"test"}, {"of"}, {"expected"}}, std::move(rows)));
  return 0;
}

// Verdicts of one component's tests so far.
struct tally {
  std::map<std::pair<outcome, std::string>, std::vector<std::string>> causes; // names of tests by verdict and message
  std::vector<std::string> hung;
  std::size_t behaviour_tests = 0, behaviour_tests_run = 0; // all; those that passed or failed
  std::string first_skip_reason;                            // of a test of behaviour
};

constexpr std::size_t most_hung = 2;

// Prints a verdict; a message that an earlier test had is replaced by that test's name.
void print(const check_options& o, const subject& s, const test& t, const verdict& v, const tally& so_far) {
  const auto known = so_far.causes.find({v.result, v.message});
  const std::string as = known == so_far.causes.end() ? "" : fmt::format("as {}", known->second.front());
  switch (v.result) {
  case outcome::passed: print_output(fmt::format("  pass  {:<24} {:6.2f} s\n", t.name, v.seconds)); break;
  case outcome::skipped:
    print_output(fmt::format("  skip  {:<24}          {}\n", t.name, as.empty() ? v.message : as));
    break;
  case outcome::failed:
    print_output(fmt::format("  FAIL  {:<24} {:6.2f} s  {}\n", t.name, v.seconds, as));
    if (as.empty())
      print_output(fmt::format("          expected: {}\n          actual:   {}\n          rerun:    {}\n", t.expected,
                               v.message, rerun_command(o, s, t)));
    break;
  }
  for (const std::string& line : v.remarks) print_output(fmt::format("          {}\n", line));
}

void count(tally& all, const test& t, const verdict& v) {
  if (v.result != outcome::passed) all.causes[{v.result, v.message}].push_back(t.name);
  if (v.hung) all.hung.push_back(t.name);
  if (t.metadata) return;
  ++all.behaviour_tests;
  if (v.result != outcome::skipped)
    ++all.behaviour_tests_run;
  else if (all.first_skip_reason.empty())
    all.first_skip_reason = v.message;
}

// After several tests that hung, the others would probably hang too: skip them.
verdict verdict_of(const check_options& o, const subject& s, const test& t, const tally& so_far) {
  if (so_far.hung.size() >= most_hung &&
      !s.launcher_ranks) // else the launcher's other processes would run the test alone
    return {outcome::skipped, fmt::format("not run after {} hung (--only {} runs it)", join(so_far.hung), t.name)};
  return o.in_process || s.launcher_ranks ? run_in_process(t, s) : run_in_child(t, s);
}

// If a launcher started this process to check a transport that needs one: joins the other processes, and returns this
// process's rank. Returns nullopt otherwise.
std::optional<launcher_environment> join_launcher(target& t) {
  const auto needs = [](const subject& s) { return s.tested && !s.tested->launcher.empty(); };
  if (std::none_of(t.subjects.begin(), t.subjects.end(), needs)) return {};
  auto place = find_launcher(process_environment());
  if (!place) return {};
  if (place->size == 0)
    throw failure(exit_code::usage,
                  fmt::format("{} does not tell the number of its processes: use mpirun", place->launcher));
  for (subject& s : t.subjects) {
    if (!needs(s)) continue;
    // join() has printed the reason
    if (make_launcher_request_handlers().join(s.file.string(), s.tested->id) != 0)
      throw failure(exit_code::plugin, fmt::format("process {} could not join the others", place->rank));
    s.launcher_ranks = place->size;
  }
  std::string job = place->job;
  std::replace_if(
      job.begin(), job.end(), [](unsigned char c) { return !std::isalnum(c); }, '-');
  join_launcher_ranks(fs::temp_directory_path() / fmt::format("regatta-check-{}-{}", getuid(), job), place->rank,
                      place->size);
  return place;
}

// Returns the members of a component's entry in the document, or of the file's, without its tests.
ordered_json entry_of(const subject& s) {
  if (!s.tested) return {{"kind", "file"}};
  ordered_json entry{{"kind", name_of(s.tested->kind)}, {"id", s.tested->id},
                     {"plugin", s.tested->plugin_name}, {"version", s.tested->plugin_version},
                     {"parameters", s.parameters},      {"capabilities", ordered_json::object()}};
  if (!s.launcher_ranks) // else a child of this process would take part in the launcher's job
    entry.update(abilities_of(*s.plugins, *s.tested, s.parameters));
  return entry;
}

// Returns the members of the document that are known before the first test.
ordered_json head_of(const target& t, const check_options& o) {
  nlohmann::json plugins = nlohmann::json::array();
  for (const component& c : t.plugins->components())
    plugins.push_back({{"kind", name_of(c.kind)},
                       {"id", c.id},
                       {"version", c.plugin_version},
                       {"path", c.file.string()},
                       {"sha256", sha256_of(c.file)}});
  ordered_json context =
      make_context(o.command, nlohmann::json::array({describe_host(cgroup_cpu_limit())}), std::move(plugins), {});
  context["abi"] = fmt::format("{}.{}", RG_ABI_MAJOR, RG_ABI_MINOR);
  return {{"schema", "regatta.check/1"},
          {"context", std::move(context)},
          {"file", t.file.string()},
          {"sha256", sha256_of(t.file)},
          {"seed", o.seed},
          {"only", o.only},
          {"quick", o.quick}};
}

check_report begin_report(const target& t, const check_options& o) {
  const bool is_read = o.json || !o.report.empty();
  check_report report(is_read ? head_of(t, o) : ordered_json::object(), o.report);
  for (const subject& s : t.subjects) report.plan(is_read ? entry_of(s) : ordered_json::object(), tests_for(s, o));
  if (!report.has_tests())
    throw failure(exit_code::usage, fmt::format("--only {}: no test has such a name (see --list)", join(o.only)));
  report.begin();
  return report;
}

void run_subject(const subject& s, const check_options& o, check_report& report) {
  tally so_far;
  const std::vector<test> tests = tests_for(s, o);
  if (!tests.empty() && !o.json) print_output(fmt::format("{}\n", title_of(s)));
  for (const test& one : tests) {
    const verdict v = verdict_of(o, s, one, so_far);
    if (!o.json) print(o, s, one, v, so_far);
    count(so_far, one, v);
    report.record(v, rerun_command(o, s, one));
  }
  for (const auto& [cause, names] : so_far.causes)
    if (!o.json && cause.first == outcome::failed && names.size() > 1)
      print_output(fmt::format("  one cause, {} tests: {}\n", names.size(), join(names)));
  if (so_far.behaviour_tests && !so_far.behaviour_tests_run)
    report.record_untested(fmt::format("{}: {}", title_of(s), so_far.first_skip_reason));
}

// Runs the tests in a process of the launcher whose rank is not 0. Rank 0 prints the results of all.
int run_silently(const target& t, const check_options& o) {
  for (const subject& s : t.subjects)
    for (const test& one : tests_for(s, o))
      if (s.launcher_ranks && one.under_launcher) run_in_process(one, s);
  return static_cast<int>(exit_code::done);
}

void print_summary(const check_options& o, const check_report& report) {
  if (o.json) return print_output(document_text(report.document()));
  print_output(fmt::format("{} passed, {} failed, {} skipped\n", report.count("passed"), report.count("failed"),
                           report.count("skipped")));
  for (const ordered_json& one : report.document().at("untested"))
    print_output(fmt::format("nothing was tested of {}\n", one.get<std::string>()));
  for (const std::string& file : o.report) print_output(fmt::format("report: {}\n", file));
}

int run_all(target& t, const check_options& o) {
  const auto place = join_launcher(t);
  if (place && place->rank != 0) return run_silently(t, o);
  check_report report = begin_report(t, o);
  for (const subject& s : t.subjects) run_subject(s, o, report);
  print_summary(o, report);
  if (report.count("failed")) return static_cast<int>(exit_code::run);
  return static_cast<int>(report.document().at("untested").empty() ? exit_code::done : exit_code::skipped);
}

// Runs one test, in the process that was started for it.
int run_one(const check_options& o) {
  const report_to_parent report(document_stream());
  subject s;
  s.file = o.target;
  s.seed = o.seed;
  s.reference = o.reference;
  s.write_to = o.write_reference;
  s.parameters = read_set(o.set);
  std::unique_ptr<registry> plugins; // null if the file itself is tested: the test must load it
  if (const auto name = component_name(o.component)) {
    std::vector<fs::path> files = {s.file};
    files.insert(files.end(), o.with.begin(), o.with.end());
    plugins = std::make_unique<registry>(registry::of_files(files));
    s.plugins = plugins.get();
    s.tested = &plugins->find(name->first, name->second);
  }
  for (const test& t : tests_for(s, o))
    if (t.name == o.one) {
      report.send(run_in_process(t, s));
      return 0;
    }
  throw failure(exit_code::usage, fmt::format("there is no test {}", o.one));
}

int write(const subject& s, const check_options& o) {
  const test task = write_reference_test();
  const verdict v = o.in_process ? run_in_process(task, s) : run_in_child(task, s);
  if (v.result != outcome::passed)
    throw failure(v.result == outcome::skipped ? exit_code::skipped : exit_code::run,
                  fmt::format("{}: no reference is written: {}", title_of(s), v.message));
  print_output(fmt::format("{}: inputs, weights and gradients of {}\n", o.write_reference, title_of(s)));
  return static_cast<int>(exit_code::done);
}

} // namespace

int check_verb(const check_options& o) {
  if (!o.one.empty()) return run_one(o);
  check_report::require_formats(o.report);
  if (!o.report.empty() && (o.list || !o.write_reference.empty()))
    throw failure(exit_code::usage, "--report: --list and --write-reference run no tests to report; leave it out");
  target t = load_target(o);
  const auto is_model = [](const subject& s) { return s.tested && s.tested->kind == kind::model; };
  const auto models = std::count_if(t.subjects.begin(), t.subjects.end(), is_model);
  if ((!o.reference.empty() || !o.write_reference.empty()) && models != 1)
    throw failure(exit_code::usage,
                  fmt::format("--reference and --write-reference take one model; {} holds {}: name it as model/ID",
                              one_line(o.target), models));
  if (!o.write_reference.empty()) return write(*std::find_if(t.subjects.begin(), t.subjects.end(), is_model), o);
  return o.list ? list(t, o) : run_all(t, o);
}

} // namespace regatta

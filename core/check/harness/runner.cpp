// SPDX-License-Identifier: Apache-2.0
#include "check/harness/runner.hpp"

#include "base/failure.hpp"
#include "base/text.hpp"
#include "check/harness/allocation_watch.hpp"
#include "check/harness/hang_watch.hpp"
#include "check/harness/progress.hpp"
#include "launch/process.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace regatta::conformance {
namespace {

using clock_type = std::chrono::steady_clock;

double seconds_since(clock_type::time_point begin) {
  return std::chrono::duration<double>(clock_type::now() - begin).count();
}

std::vector<std::string>& remarks() { // of the test that runs in this process
  static std::vector<std::string> all;
  return all;
}

constexpr std::size_t most_output = 65536; // bytes of a test's output that are kept

// The output of a test: its end, and the number of bytes before that.
struct printed {
  std::string text;
  std::uint64_t left_out = 0;

  void append(const char* bytes, std::size_t size) {
    text.append(bytes, size);
    if (text.size() > 2 * most_output) shorten(); // rarely, because it moves what is kept
  }
  void shorten() {
    if (text.size() <= most_output) return;
    left_out += text.size() - most_output;
    text.erase(0, text.size() - most_output);
  }
};

// Appends what the pipe holds now. Stops after two pipes' capacities: a process that outlives the test may go on
// writing.
void drain(int pipe, printed& output) {
  pollfd end{pipe, POLLIN, 0};
  char buffer[4096];
  for (int reads = 0; reads < 32 && poll(&end, 1, 0) > 0; ++reads) {
    const ssize_t n = read(pipe, buffer, sizeof buffer);
    if (n <= 0) return;
    output.append(buffer, static_cast<std::size_t>(n));
  }
}

// Reads both pipes until the first one, of reports and progress, ends. Returns false if nothing arrives through that
// one and the process hangs.
bool collect(const process& p, std::string& report, printed& output, std::chrono::seconds call_limit) {
  hang_watch watch(p.pid, call_limit);
  std::array<pollfd, 2> ends{{{p.output.get(), POLLIN, 0}, {p.errors.get(), POLLIN, 0}}};
  while (ends[0].fd >= 0) { // a process that outlives the test may keep the other pipe open
    if (watch.hangs()) return false;
    if (poll(ends.data(), ends.size(), 250) <= 0) continue;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (!ends[i].revents) continue;
      char buffer[4096];
      const ssize_t n = read(ends[i].fd, buffer, sizeof buffer);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0)
        ends[i].fd = -1;
      else if (i == 0)
        report.append(buffer, static_cast<std::size_t>(n));
      else
        output.append(buffer, static_cast<std::size_t>(n));
      if (i == 0) watch.progress();
    }
  }
  if (ends[1].fd >= 0) drain(ends[1].fd, output); // what was written just before the end
  return true;
}

std::string end_of(const std::string& error_output) {
  constexpr std::size_t most = 300;
  const std::string words =
      one_line(error_output.size() > most ? error_output.substr(error_output.size() - most) : error_output);
  return words.empty() ? words : fmt::format(" (\"{}\")", words);
}

// Returns the arguments of `regatta` for a process that runs only this test and sends its verdict to this process
// (report_to_parent).
std::vector<std::string> arguments_for(const test& t, const subject& s) {
  std::vector<std::string> words = {"check", s.file.string(), "--one", t.name, "--seed", std::to_string(s.seed)};
  const auto add = [&](const std::string& option, const std::string& value) {
    words.insert(words.end(), {option, value});
  };
  if (s.tested) add("--component", fmt::format("{}/{}", name_of(s.tested->kind), s.tested->id));
  for (const auto& file : s.other_files) add("--with", file.string());
  if (!s.reference.empty()) add("--reference", s.reference.string());
  if (!s.write_to.empty()) add("--write-reference", s.write_to.string());
  for (const auto& [name, value] : s.parameters) add("--set", name + "=" + value.dump());
  return words;
}

// Returns how long a call of this plugin may sleep or compute before it counts as a hang.
std::chrono::seconds call_limit_of(const subject& s) {
  const bool computes = s.tested && (s.tested->kind == kind::model || s.tested->kind == kind::executor);
  return std::chrono::seconds((computes ? 60 : 15) * time_limit_factor);
}

} // namespace

void remark(const std::string& text) {
  remarks().push_back(text);
}

verdict run_in_process(const test& t, const subject& s) {
  const auto begin = clock_type::now();
  remarks().clear();
  verdict v;
  try {
    t.run(s);
  } catch (const skipped& e) {
    v = {outcome::skipped, one_line(e.what())};
  } catch (const timed_out& e) {
    v = {outcome::failed, one_line(e.what()), 0, true};
  } catch (const failure& e) {
    v = {e.code() == exit_code::skipped ? outcome::skipped : outcome::failed, one_line(e.what())};
  } catch (const std::exception& e) {
    v = {outcome::failed, one_line(e.what())};
  } catch (...) {
    v = {outcome::failed, "an exception was thrown that is not a std::exception"};
  }
  v.seconds = seconds_since(begin);
  v.remarks = remarks();
  return v;
}

verdict run_in_child(const test& t, const subject& s) {
  const auto begin = clock_type::now();
  if (const std::string counter = allocation_counter_library(); !counter.empty())
    setenv("LD_PRELOAD", counter.c_str(), 1);
  process p = start_process("/proc/self/exe", [&](int) { return arguments_for(t, s); }, {}, {});
  std::string report;
  printed output;
  const std::chrono::seconds call_limit = call_limit_of(s);
  const bool in_time = collect(p, report, output, call_limit);
  if (!in_time) kill_process(p);
  const int status = reap_process(p);
  unsetenv("LD_PRELOAD");
  verdict v;
  const auto j = nlohmann::json::parse(report, nullptr, false);
  if (!in_time)
    v = {outcome::failed, fmt::format("no call of the plugin returned for {} s", call_limit.count()), 0, true};
  else if (j.is_discarded() || !j.is_object())
    v = {outcome::failed, fmt::format("its process {}{}{}", WIFSIGNALED(status) ? "was " : "", describe_status(status),
                                      end_of(output.text))};
  else
    v = j.get<verdict>();
  v.seconds = seconds_since(begin);
  output.shorten();
  v.output = output.left_out ? fmt::format("({} bytes before this are left out)\n", output.left_out) : "";
  v.output += output.text;
  return v;
}

report_to_parent::report_to_parent(std::FILE* output) : to_(dup(fileno(output))) {
  if (to_ < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
    throw failure(exit_code::run, "standard output is closed; the test process needs it for its report");
  report_progress_to(to_);
}

void report_to_parent::send(const verdict& v) const {
  const std::string text = nlohmann::json(v).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  (void)dprintf(to_, "%s\n", text.c_str()); // fails if the parent has closed the pipe
  std::fflush(nullptr);
}

} // namespace regatta::conformance

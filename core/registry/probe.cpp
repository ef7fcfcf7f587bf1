// SPDX-License-Identifier: Apache-2.0
#include "registry/probe.hpp"

#include "base/text.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string_view>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/core.h>

namespace regatta {
namespace {

// What the child writes: stages, each ended by '\n', then '=' and the verdict, ended by '\0'. No end: it died.
constexpr char verdict_mark = '=';

class descriptor {
public:
  explicit descriptor(int fd = -1) : fd_(fd) {}
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() { reset(); }
  int get() const { return fd_; }
  void reset(int fd = -1) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

private:
  int fd_;
};

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const auto n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

[[noreturn]] void run_child(int out, int said, const std::function<std::string(const stage_function&)>& trial) {
  // exit() in the plugin must not run the destructors and handlers of the parent, of which this is a copy: registered
  // last, this one runs first.
  std::atexit([] { ::_exit(EXIT_FAILURE); });
  for (int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGTERM, SIGINT, SIGHUP, SIGPIPE})
    ::signal(signal, SIG_DFL);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  if (const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC); nowhere >= 0) {
    ::dup2(nowhere, STDIN_FILENO);
    ::dup2(nowhere, STDOUT_FILENO);
    ::dup2(said >= 0 ? said : nowhere, STDERR_FILENO);
  }
  std::string verdict;
  try {
    verdict = trial([out](const char* stage) { write_all(out, std::string(stage) + '\n'); });
  } catch (const std::exception& e) {
    verdict = e.what();
  } catch (...) {
    verdict = "threw something that is no std::exception";
  }
  write_all(out, verdict_mark + one_line(verdict) + '\0');
  ::_exit(EXIT_SUCCESS);
}

// Everything the child wrote, until its verdict is complete, it is gone, or patience is at its end.
std::string read_report(int fd, std::chrono::milliseconds patience, bool& timed_out) {
  using clock = std::chrono::steady_clock;
  const auto deadline = clock::now() + patience;
  std::string report;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock::now()).count();
    if (left <= 0) {
      timed_out = true;
      return report;
    }
    pollfd p{fd, POLLIN, 0};
    if (::poll(&p, 1, static_cast<int>(left)) <= 0) continue;
    char buffer[4096];
    const auto n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return report;
    report.append(buffer, static_cast<std::size_t>(n));
    if (report.back() == '\0') return report;
  }
}

// The end of what the child wrote to standard error, one line: an uncaught exception's text stands there.
std::string last_words(int fd) {
  constexpr off_t most = 300;
  const off_t size = fd < 0 ? 0 : ::lseek(fd, 0, SEEK_END);
  if (size <= 0) return {};
  char buffer[most];
  const auto n = ::pread(fd, buffer, sizeof buffer, size > most ? size - most : 0);
  return n <= 0 ? std::string{} : one_line(std::string_view(buffer, static_cast<std::size_t>(n)));
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) {
    const char* name = ::sigabbrev_np(WTERMSIG(status));
    return name ? fmt::format("was killed by SIG{}", name) : fmt::format("was killed by signal {}", WTERMSIG(status));
  }
  return "ended the process";
}

} // namespace

std::string probe(const std::function<std::string(const stage_function&)>& trial, std::chrono::milliseconds patience) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fmt::format("cannot be tried: no pipe ({})", std::strerror(errno));
  descriptor in(ends[0]), out(ends[1]);
  const descriptor said(::memfd_create("regatta-probe", MFD_CLOEXEC));
  std::fflush(nullptr); // or the child could write the same once more
  const pid_t child = ::fork();
  if (child < 0) return fmt::format("cannot be tried: no process ({})", std::strerror(errno));
  if (child == 0) run_child(out.get(), said.get(), trial);
  out.reset();

  bool timed_out = false;
  const auto report = read_report(in.get(), patience, timed_out);
  ::kill(child, SIGKILL); // its verdict is in, or it will give none; a thread that the plugin started may keep it alive
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }

  // Stages and the verdict are one line each, the verdict is the last.
  const auto last_break = report.find_last_of('\n');
  const auto last = last_break == std::string::npos ? 0 : last_break + 1;
  if (report.size() > last && report[last] == verdict_mark && report.back() == '\0')
    return report.substr(last + 1, report.size() - last - 2);
  std::string stage = "was being loaded";
  if (last > 0) {
    const auto before = last_break == 0 ? std::string::npos : report.find_last_of('\n', last_break - 1);
    const auto begin = before == std::string::npos ? 0 : before + 1;
    stage = report.substr(begin, last_break - begin);
  }
  const auto end =
      timed_out ? fmt::format("did not come back within {} s", patience.count() / 1000.0) : how_it_ended(status);
  const auto words = last_words(said.get());
  return fmt::format("{} while it {}{}: a bug of the plugin, run it under a debugger", end, stage,
                     words.empty() ? words : fmt::format(" (\"{}\")", words));
}

} // namespace regatta

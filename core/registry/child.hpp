// SPDX-License-Identifier: Apache-2.0
//
// A process that runs plugin code for this one, and its answers: for run_in_child() and for children side by side
// (simulate/side_by_side.hpp).
#pragma once

#include "base/descriptor.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "registry/run_in_child.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/core.h>

namespace regatta::children {

using nlohmann::json;
using clock_type = std::chrono::steady_clock;

// The child writes frames: an 8-byte length, then that many bytes of CBOR. An array [who, doing] is a stage, an object
// is an answer.
inline constexpr std::uint64_t longest_frame = 256 << 20;

// ------------------------------------------------------------------------------------------------------- child ---

inline void write_frame(int fd, const json& what) {
  const auto bytes = json::to_cbor(what);
  const std::uint64_t size = bytes.size();
  std::string frame(reinterpret_cast<const char*>(&size), sizeof size);
  frame.append(bytes.begin(), bytes.end());
  if (!write_all(fd, frame)) ::_exit(EXIT_FAILURE); // the parent has closed the pipe
}

inline json failed_frame(exit_code code, const std::string& text) {
  std::vector<std::string> lines; // each may contain control characters of the plugin's text; one_line() replaces them
  for (const std::string& line : lines_of(text)) lines.push_back(one_line(line));
  return {{"code", static_cast<int>(code)}, {"failed", join(lines, "\n")}};
}

[[noreturn]] inline void run_child(pid_t parent, int out, int said, std::size_t first, std::size_t count,
                                   const std::function<json(std::size_t, const stage_function&)>& work) {
  ::setpgid(0, 0); // the parent handles Ctrl-C; a kill of this group ends processes that a plugin forks, too
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(EXIT_FAILURE);
  // The child is a copy of the parent: exit() in a plugin must not run the parent's destructors and handlers. Handlers
  // run in reverse order of registration, so this one runs first.
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
  const stage_function stage = [out](const std::string& who, const std::string& doing) {
    write_frame(out, json::array({who, doing}));
  };
  for (std::size_t i = first; i < count; ++i) {
    json frame;
    try {
      frame = {{"value", work(i, stage)}};
    } catch (const failure& e) {
      frame = failed_frame(e.code(), e.what());
    } catch (const std::exception& e) {
      frame = failed_frame(exit_code::plugin, e.what());
    } catch (...) {
      frame = failed_frame(exit_code::plugin, "threw something that is no std::exception");
    }
    write_frame(out, frame);
  }
  ::_exit(EXIT_SUCCESS);
}

// ------------------------------------------------------------------------------------------------------ parent ---

// One child process, and the output that it has written.
class child {
public:
  enum class event { answer, ended, late, interrupted };

  // Forks a child that computes work(first) .. work(count - 1). Throws failure (run) if that fails.
  child(std::size_t first, std::size_t count, const std::function<json(std::size_t, const stage_function&)>& work)
      : said_(above_standard(unique_fd(::memfd_create("regatta-ask", MFD_CLOEXEC)))) {
    auto [in, out] = make_pipe();
    if (in.get() < 0 || out.get() < 0) cannot("no pipe");
    in_ = std::move(in);
    std::fflush(nullptr); // else the child could write the buffered output again
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ < 0) cannot("no process");
    if (pid_ == 0) run_child(parent, out.get(), said_.get(), first, count, work);
    ::setpgid(pid_, pid_); // here too, so that reap() can kill the group at once
  }
  child(const child&) = delete;
  child& operator=(const child&) = delete;
  // Kills the child, which a plugin's thread may still keep alive. No further answer is expected from it.
  ~child() { reap(); }

  // Reads until the next answer, which it moves to `frame`, the end of the pipe, the end of `limit`, or an
  // interruption. Throws as take_answer() does.
  event next(const child_options& o, json& frame) {
    const auto deadline = clock_type::now() + o.limit;
    for (;;) {
      if (take_answer(frame)) return event::answer;
      if (o.interrupted && o.interrupted()) return event::interrupted;
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock_type::now()).count();
      if (left <= 0) return event::late;
      pollfd p{in_.get(), POLLIN, 0};
      if (::poll(&p, 1, static_cast<int>(o.interrupted ? std::min<long>(left, 50) : left)) <= 0) continue;
      if (!read_some()) return event::ended;
    }
  }
  // The parts of next(), for several children: reads once, which waits, and returns false at the end of the pipe; takes
  // the next answer from what was read, if it is complete. take_answer() throws failure (plugin) or
  // nlohmann::json::exception if the bytes are no frame, because a plugin wrote to the pipe.
  bool read_some() {
    char buffer[65536];
    const auto n = ::read(in_.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) return true;
    if (n <= 0) return false;
    heard_.append(buffer, static_cast<std::size_t>(n));
    return true;
  }
  bool take_answer(json& frame) {
    while (take(frame)) {
      if (!frame.is_array()) return true;
      who_ = frame.at(0).get<std::string>();
      doing_ = frame.at(1).get<std::string>();
    }
    return false;
  }
  int descriptor() const { return in_.get(); }
  int process() const { return pid_; }

  // "model mlp (FILE) was killed by SIGSEGV while it was described (...): a bug of the plugin, ..."
  std::string death_message(const std::string& end) const {
    const auto words = last_words();
    return fmt::format("{}{}{} while it {}{}: a bug of the plugin, run it under a debugger", who_,
                       who_.empty() ? "" : " ", end, doing_, words.empty() ? words : fmt::format(" (\"{}\")", words));
  }

  // Kills the child if it still runs. Returns "was killed by SIGSEGV" or "ended the process".
  std::string how_it_ended() {
    // The pipe can end before the process does, if a plugin closes descriptors that it does not own.
    const int status = reap();
    if (!WIFSIGNALED(status)) return "ended the process";
    const char* name = ::sigabbrev_np(WTERMSIG(status));
    return name ? fmt::format("was killed by SIG{}", name) : fmt::format("was killed by signal {}", WTERMSIG(status));
  }

private:
  [[noreturn]] static void cannot(const char* what) {
    throw failure(exit_code::run,
                  fmt::format("cannot start the process that loads plugins: {} ({})", what, std::strerror(errno)));
  }

  // Takes the next frame from the bytes that were read. Returns false if it is not complete.
  bool take(json& frame) {
    std::uint64_t size = 0;
    if (heard_.size() < sizeof size) return false;
    std::memcpy(&size, heard_.data(), sizeof size);
    if (size > longest_frame) throw failure(exit_code::plugin, death_message("wrote to a file descriptor of regatta"));
    if (heard_.size() < sizeof size + size) return false;
    try {
      frame = parse_cbor({reinterpret_cast<const std::uint8_t*>(heard_.data()) + sizeof size, size});
    } catch (const failure&) {
      throw failure(exit_code::plugin, death_message("wrote to a file descriptor of regatta"));
    }
    heard_.erase(0, sizeof size + size);
    return true;
  }

  // Returns the end of the child's standard error as one line: it holds the text of an uncaught exception.
  std::string last_words() const {
    constexpr off_t most = 300;
    const off_t size = said_.get() < 0 ? 0 : ::lseek(said_.get(), 0, SEEK_END);
    if (size <= 0) return {};
    char buffer[most];
    const auto n = ::pread(said_.get(), buffer, sizeof buffer, size > most ? size - most : 0);
    return n <= 0 ? std::string{} : one_line(std::string_view(buffer, static_cast<std::size_t>(n)));
  }

  // Kills the child and waits for it. Returns its status, as waitpid() does.
  int reap() {
    if (pid_ < 0) return status_;
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL); // a process that has already died keeps its status
    while (::waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status_;
  }

  unique_fd in_, said_;
  pid_t pid_ = -1;
  int status_ = 0;
  std::string heard_, who_, doing_ = "was being loaded";
};

inline child_result failed_result(exit_code code, const std::string& text) {
  return {{}, failure(code, text)};
}

// Returns what an event says about the child's current item.
inline child_result result_of(child& c, child::event e, json& frame, const child_options& options) {
  switch (e) {
  case child::event::answer:
    if (const auto failed = frame.find("failed"); failed != frame.end())
      return failed_result(static_cast<exit_code>(frame.at("code").get<int>()), failed->get<std::string>());
    return {std::move(frame.at("value")), {}};
  case child::event::ended: return failed_result(exit_code::plugin, c.death_message(c.how_it_ended()));
  case child::event::late:
    return failed_result(exit_code::plugin,
                         c.death_message(fmt::format("did not return within {} s", options.limit.count() / 1000.0)));
  case child::event::interrupted: break;
  }
  return failed_result(exit_code::interrupted, "interrupted");
}

} // namespace regatta::children

// SPDX-License-Identifier: Apache-2.0
#include "data/producer.hpp"

#include "base/failure.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

namespace regatta {
namespace {

constexpr int alive_in_child = 3; // descriptor of the pipe in the child; the watch below names it

// Starts the command beside a watch, which reads from a pipe to which no process writes. This process holds the other
// end, so the read returns once this process has ended, by any signal; the watch then kills the whole group. The outer
// parentheses make the watch a child of init, so that a command that waits for its children does not wait for it.
constexpr char script[] = "( (read -r end <&3; kill -KILL 0) & ); exec 3<&-; exec /bin/sh -c \"$1\"";

} // namespace

producer::producer(std::string command) : command_(std::move(command)) {
  const char* const arguments[] = {"sh", "-c", script, "sh", command_.c_str(), nullptr};
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw failure(exit_code::run, fmt::format("data.producer: cannot make a pipe: {}", std::strerror(errno)));
  pid_ = ::fork();
  if (pid_ == 0) {
    // Other threads may hold locks at the fork, so only system calls are allowed until exec.
    ::setpgid(0, 0);
    if (ends[0] == alive_in_child)
      ::fcntl(alive_in_child, F_SETFD, 0);
    else
      ::dup2(ends[0], alive_in_child);
    ::execv("/bin/sh", const_cast<char* const*>(arguments));
    ::_exit(127);
  }
  const int error = errno;
  ::close(ends[0]);
  alive_ = ends[1];
  if (pid_ > 0) {
    ::setpgid(pid_, pid_); // here too, so that end() can kill the group at once
    return;
  }
  ::close(alive_);
  throw failure(exit_code::run, fmt::format("data.producer: cannot start a process: {}", std::strerror(error)));
}

producer::~producer() {
  if (pid_ >= 0) end();
  ::close(alive_);
}

int producer::end() {
  int status = 0;
  ::kill(-pid_, SIGKILL); // before waitpid(), which frees the group's number
  ::waitpid(std::exchange(pid_, -1), &status, 0);
  return status;
}

std::optional<std::string> producer::ended() {
  siginfo_t info{};
  if (pid_ < 0 || ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
    return std::nullopt;
  const int status = end();
  if (WIFSIGNALED(status)) return fmt::format("was killed by signal {}", WTERMSIG(status));
  return fmt::format("exited with code {}", WEXITSTATUS(status));
}

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#include "data/producer.hpp"

#include "base/failure.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace regatta {

producer::producer(std::string command) : command_(std::move(command)) {
  const std::string line = "exec " + command_; // exec: a single process, so that killing it leaves none behind
  const char* const arguments[] = {"sh", "-c", line.c_str(), nullptr};
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0)
    throw failure(exit_code::run, fmt::format("data.producer: cannot start a process: {}", std::strerror(errno)));
  if (pid_ > 0) return;
  // Other threads may hold locks at the fork, so only system calls are allowed until exec.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  ::execv("/bin/sh", const_cast<char* const*>(arguments));
  ::_exit(127);
}

producer::~producer() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

std::optional<std::string> producer::ended() {
  int status = 0;
  if (pid_ < 0 || ::waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  pid_ = -1;
  if (WIFSIGNALED(status)) return fmt::format("was killed by signal {}", WTERMSIG(status));
  return fmt::format("exited with code {}", WEXITSTATUS(status));
}

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// One child process that cannot outlive the calling thread, and inherits only what start_process() names.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "control/blob.hpp"

namespace regatta {

class unique_fd {
public:
  unique_fd() = default;
  explicit unique_fd(int fd) : fd_(fd) {}
  unique_fd(unique_fd&& other) noexcept : fd_(other.release()) {}
  unique_fd& operator=(unique_fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~unique_fd() { reset(); }
  int get() const noexcept { return fd_; }
  int release() noexcept { return std::exchange(fd_, -1); }
  void reset() noexcept;

private:
  int fd_ = -1;
};

struct process {
  pid_t pid = -1;
  unique_fd handle;         // a pidfd: readable once the process has ended
  unique_fd output, errors; // read ends of its standard output and error
};

// Starts `program`. `arguments(fd)` returns its arguments after argv[0]; the child reads `secret` from descriptor `fd`.
// Standard input is /dev/null. Signals have their default action, except SIGINT (the parent handles Ctrl-C), SIGPIPE
// and SIGXFSZ (writes fail instead), which are ignored. The child also inherits the descriptor `inherited` (above 2;
// -1: none). It leads its own process group and runs on `cpus` (empty: on those of this thread). When memory runs out,
// the kernel kills it before this process. It is killed when the calling THREAD ends. Throws failure (run) if any of
// this is impossible. Safe while other threads run.
process start_process(const std::string& program, const std::function<std::vector<std::string>(int)>& arguments,
                      const blob& secret, const std::vector<int>& cpus, int inherited = -1);

// Sends SIGKILL to the process and all others in its group.
void kill_process(const process& p) noexcept;

// Returns true if the process is stopped by a signal, and not by a debugger. [any]
bool is_stopped(pid_t pid) noexcept;

// Waits until the process has ended, kills other processes in its group, and returns its status as waitpid() does.
int reap_process(process& p) noexcept;

// Returns "killed by SIGSEGV" or "exited with code 3".
std::string describe_status(int status);

} // namespace regatta

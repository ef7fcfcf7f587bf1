// SPDX-License-Identifier: Apache-2.0
//
// One child process that cannot outlive this thread and inherits nothing but what is named here.
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
  unique_fd output, errors; // what it writes to standard output and error
};

// Starts `program`. `arguments(fd)` makes its arguments after argv[0], `fd` being where it can read `secret`. Standard
// input is /dev/null, all signals are as by default but SIGINT (a terminal's Ctrl-C is the parent's to handle), SIGPIPE
// and SIGXFSZ (writes fail instead), which are ignored. It inherits the descriptor `inherited` (above 2; -1: none) beside
// that. It leads a process group of its own, runs on `cpus` (empty: wherever this thread may), is taken by the kernel
// before this process when memory runs out, and is killed when the calling THREAD ends. Throws failure (run) if anything
// of that is impossible. Safe with other threads around.
process start_process(const std::string& program, const std::function<std::vector<std::string>(int)>& arguments,
                      const blob& secret, const std::vector<int>& cpus, int inherited = -1);

// SIGKILL to the process and whatever else is in its group.
void kill_process(const process& p) noexcept;

// Whether the process is stopped by a signal, and not by a debugger. [any]
bool is_stopped(pid_t pid) noexcept;

// Waits for the end of the process, kills what it left in its group, and takes its exit status, as by waitpid.
int reap_process(process& p) noexcept;

// "killed by SIGSEGV", "exited with code 3".
std::string describe_status(int status);

} // namespace regatta

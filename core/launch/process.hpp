// SPDX-License-Identifier: Apache-2.0
//
// Starts, kills and reaps a child process. It cannot outlive the thread that started it, and inherits only the
// descriptors that start_process() names.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/descriptor.hpp"
#include "control/blob.hpp"

namespace regatta {

// A child. Its destructor only closes the descriptors: end the child by kill_process() and reap_process() first.
struct process {
  pid_t pid = -1;           // -1: not started, or reaped
  unique_fd handle;         // a pidfd: readable once the process has ended
  unique_fd output, errors; // read ends of its standard output and error; they block
};

// Starts the executable at the path `program` (PATH is not searched); returns once it runs. Calls `arguments(fd)` once,
// in this process, for the arguments after argv[0]; the child reads `secret` (at most 4 KiB) from descriptor `fd` up to
// its end. The child also inherits the descriptor `inherited` (above 2; -1: none). Its standard input is /dev/null.
// Signals have their default action, except SIGINT (the parent handles Ctrl-C), SIGPIPE and SIGXFSZ (writes fail
// instead), which are ignored. The child leads its own process group and runs on `cpus` (empty: on those of this
// thread). When memory runs out, the kernel kills it before this process. It is killed when the calling THREAD ends.
// Throws failure (run) if the child cannot be set up or the program cannot be executed. [any]
process start_process(const std::string& program, const std::function<std::vector<std::string>(int)>& arguments,
                      const blob& secret, const std::vector<int>& cpus, int inherited = -1);

// Sends SIGKILL to the process and all others in its group, and returns at once. Does nothing if `p.pid` is -1. [any]
void kill_process(const process& p) noexcept;

// Returns true if the process is stopped by a signal, and not by a debugger; false if there is no such process. [any]
bool is_stopped(pid_t pid) noexcept;

// Waits until the process has ended, kills other processes in its group, sets `p.pid` to -1, and returns the status
// that waitpid() stores. Does not end the process itself. Requires that `p` was started and not yet reaped.
int reap_process(process& p) noexcept;

// Returns "killed by SIGSEGV" or "exited with code 3" for a status of reap_process().
std::string describe_status(int status);

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// The process that data.producer starts and that sends batches over a stream.
#pragma once

#include <optional>
#include <string>

#include <sys/types.h>

namespace regatta {

// One thread at a time.
class producer {
public:
  // Starts `/bin/sh -c command` in a process group of its own; it shares this process's standard input, output and
  // error. SIGKILL ends all processes of the group when this object or this process ends, however it ends, and when
  // ended() reports the end of the shell. Throws failure (run) if no process can be made; ended() reports a command
  // that is not found.
  explicit producer(std::string command);
  ~producer();
  producer(const producer&) = delete;
  producer& operator=(const producer&) = delete;

  // Returns how the shell ended, for example "exited with code 1", in the first call after its end; std::nullopt
  // before and afterwards. Does not wait.
  std::optional<std::string> ended();

private:
  int end(); // kills the group and returns the shell's status, as waitpid() does

  std::string command_;
  pid_t pid_ = -1;
  int alive_ = -1; // end of a pipe that closes when this process ends
};

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// The process that data.producer starts and that sends batches over a stream.
#pragma once

#include <optional>
#include <string>

#include <sys/types.h>

namespace regatta {

class producer {
public:
  // Starts "exec `command`" in /bin/sh: one simple command, no list with ; or && and no pipe. The process stays in this
  // process's group and shares its standard input, output and error. SIGKILL ends it when the calling thread or this
  // object ends. Throws failure (run) if no process can be made; a command that is not found is reported by ended().
  explicit producer(std::string command);
  ~producer();
  producer(const producer&) = delete;
  producer& operator=(const producer&) = delete;

  // Returns how the process ended, for example "exited with code 1", in the first call after its end; std::nullopt
  // before and afterwards. Does not wait.
  std::optional<std::string> ended();

private:
  std::string command_;
  pid_t pid_ = -1;
};

} // namespace regatta

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
  // [main] Starts `command` in a shell. The process stays in this process's group and shares its standard output and
  // error. It is killed when the calling THREAD or this object ends. Throws failure (run) if it cannot be started.
  explicit producer(std::string command);
  ~producer();
  producer(const producer&) = delete;
  producer& operator=(const producer&) = delete;

  // Returns how the process ended, for example "exited with code 1"; std::nullopt while it runs.
  std::optional<std::string> ended();

private:
  std::string command_;
  pid_t pid_ = -1;
};

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// The process that data.producer starts, which sends batches over a stream.
#pragma once

#include <optional>
#include <string>

#include <sys/types.h>

namespace regatta {

class producer {
public:
  // Starts `command` in a shell. It stays in this process's group, writes where this process writes, and is killed when
  // the calling THREAD or this object ends. Throws failure (run) where it cannot be started. [main]
  explicit producer(std::string command);
  ~producer();
  producer(const producer&) = delete;
  producer& operator=(const producer&) = delete;

  // How it ended, as "exited with code 1"; nothing while it runs.
  std::optional<std::string> ended();

private:
  std::string command_;
  pid_t pid_ = -1;
};

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// Tells a process that hangs from one that others keep from the processor.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include <sys/types.h>

namespace regatta::conformance {

// Watches the processes of a group, the caller's own left out, and decides when silence means that something hangs.
class hang_watch {
public:
  // `limit`: how long a call of the plugin may sleep, or compute.
  hang_watch(pid_t group, std::chrono::seconds limit);

  // A sign of progress came.
  void progress();
  // Whether there was none while all threads slept for `limit`, or while one used the processor for `limit`, or for twelve
  // times `limit`, whatever the threads did. Call it several times a second; it looks at /proc a few times a second.
  bool hangs();

private:
  using clock_type = std::chrono::steady_clock;
  pid_t group_;
  double limit_; // seconds
  clock_type::time_point begin_, last_;
  double asleep_ = 0;                                        // seconds since begin_ in which no thread was runnable
  std::optional<std::map<std::string, double>> used_before_; // processor seconds at the begin of the silence, by thread
};

} // namespace regatta::conformance

// SPDX-License-Identifier: Apache-2.0
//
// Tells a process that hangs from a process that does not get CPU time.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include <sys/types.h>

namespace regatta::conformance {

// Watches the processes of a group, except the caller's own, and decides when missing progress means a hang.
class hang_watch {
public:
  // `limit` is how long a call of the plugin may sleep, or compute.
  hang_watch(pid_t group, std::chrono::seconds limit);

  // Reports progress.
  void progress();
  // Returns true if, since the last progress, all threads slept for `limit`, one thread used `limit` of CPU time, or 12 x
  // `limit` passed. Call it several times a second; it reads /proc at most 5 times a second.
  bool hangs();

private:
  using clock_type = std::chrono::steady_clock;
  pid_t group_;
  double limit_; // seconds
  clock_type::time_point begin_, last_;
  double asleep_ = 0;                                        // seconds since begin_ in which no thread was runnable
  std::optional<std::map<std::string, double>> used_before_; // CPU seconds by thread when the silence began
};

} // namespace regatta::conformance

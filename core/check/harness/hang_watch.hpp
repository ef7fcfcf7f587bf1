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

// Watches all processes of a process group except the calling one, and decides when missing progress means a hang.
// Not thread-safe.
class hang_watch {
public:
  // A call of the plugin may sleep for `limit` in total, or use that much CPU time on one thread.
  hang_watch(pid_t group, std::chrono::seconds limit);

  // Reports that the group made progress: hangs() measures from now on.
  void progress();
  // Returns true if one of these holds since the last progress(): the times in which no thread was runnable add up to
  // more than `limit`; one thread used more CPU time than `limit`; more than 12 x `limit` passed. Call it more than
  // once a second: after a longer gap, only 1 s counts as sleep. Reads /proc at most 5 times a second, and returns
  // false without reading in between.
  bool hangs();

private:
  using clock_type = std::chrono::steady_clock;
  pid_t group_;
  double limit_; // seconds
  clock_type::time_point begin_, last_;
  double asleep_ = 0;                                        // seconds since begin_ in which no thread was runnable
  std::optional<std::map<std::string, double>> used_before_; // CPU seconds by thread, at the first check
};

} // namespace regatta::conformance

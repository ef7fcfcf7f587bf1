// SPDX-License-Identifier: Apache-2.0
//
// Tells a process that hangs from one that others keep from the processor.
#pragma once

#include <chrono>

#include <sys/types.h>

namespace regatta::conformance {

// Watches the processes of a group, the caller's own left out, and decides when silence means that something hangs.
class hang_watch {
public:
  // `limit`: how long a call of the plugin may sleep, or compute.
  hang_watch(pid_t group, std::chrono::seconds limit);

  // A sign of progress came.
  void progress();
  // Whether there was none while the processes slept for `limit`, or used the processor for `limit`, or whatever they did
  // for twelve times as long. Call it several times a second; it looks at /proc a few times a second at most.
  bool hangs();

private:
  using clock_type = std::chrono::steady_clock;
  pid_t group_;
  double limit_; // seconds
  clock_type::time_point begin_, last_;
  double asleep_ = 0, used_before_ = -1; // seconds; the latter: of the processor, before the silence began
};

} // namespace regatta::conformance

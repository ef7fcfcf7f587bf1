// SPDX-License-Identifier: Apache-2.0
//
// Handles SIGINT, SIGTERM and SIGHUP of the whole program. After end_at_interruptions(), the first signal ends the
// program at once. While an `interruption` lives, the first signal is only recorded, so that work can end in order, and
// the second one ends the program. Ending the program kills the main thread's children with their process groups and
// exits with code 130, without destructors or exit handlers. That works even while plugin code runs, because all of it
// happens in the signal handler.
#pragma once

namespace regatta {

// Installs the handlers. Call it first in main(), except in a rank. Signals that are ignored at this point stay
// ignored: a shell starts background jobs with SIGINT ignored on purpose. [main]
void end_at_interruptions();

// Restores the actions from before end_at_interruptions(), in a process that another launcher has started as a rank.
// Requires that no `interruption` lives. [main]
void forget_interruptions();

// The process `sender` passes its own signals on to this one. They are counted apart, because whoever sent them may
// have sent each one to this process as well: that is no second signal. [main]
void expect_echoes_of(int sender);

// While one lives, the first signal is only recorded. Objects may be nested: the outermost one clears what was recorded
// before, and its end restores the handling from before. [main]
class interruption {
public:
  interruption();
  ~interruption();
  interruption(const interruption&) = delete;
  interruption& operator=(const interruption&) = delete;
  // Returns true once a signal has arrived since the outermost object was constructed. [any]
  bool requested() const noexcept;
  // Returns a descriptor, for poll(), that is readable once requested() is true. It stays open until the program ends;
  // the caller must not read or close it. [any]
  int descriptor() const noexcept;
};

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// Handles SIGINT, SIGTERM and SIGHUP of the whole program. By default the first signal ends the program at once. While
// an `interruption` lives, the first signal is only recorded, so that work can end in order, and the second one ends
// the program. Ending the program kills the main thread's children with their process groups and exits with code 130.
// That works inside plugin code too, because all of it runs in the signal handler.
#pragma once

namespace regatta {

// Call first in main(), except in a rank. Signals that are ignored at this point stay ignored: a shell starts
// background jobs with SIGINT ignored on purpose. [main]
void end_at_interruptions();

// Undoes end_at_interruptions(), in a process that turns out to be a rank. [main]
void forget_interruptions();

// While one lives, the first signal is recorded. Objects may be nested; the outermost clears signals from before. After
// the last one, signals are handled as before the first. [main]
class interruption {
public:
  interruption();
  ~interruption();
  interruption(const interruption&) = delete;
  interruption& operator=(const interruption&) = delete;
  // Returns true once a signal has arrived. [any]
  bool requested() const noexcept;
  // Returns a descriptor that becomes readable once a signal has arrived. The caller must not read or close it.
  int descriptor() const noexcept;
};

} // namespace regatta

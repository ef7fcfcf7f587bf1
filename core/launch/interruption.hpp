// SPDX-License-Identifier: Apache-2.0
//
// SIGINT, SIGTERM and SIGHUP of the whole program. By default the first of them ends it at once; where work has to be
// ended in order, the first is remembered and the second ends the program. To end it at once is: to kill the children of
// the main thread with their process groups, and to exit with code 130. Whatever the program is doing, a plugin's code
// included, that works: it all happens in the signal's handler.
#pragma once

namespace regatta {

// First thing in main(), but not in a process that is a rank. A signal that is ignored there stays so: a shell's
// background job has SIGINT ignored, and means it. [main]
void end_at_interruptions();

// As before end_at_interruptions(): for a process that turns out to be a rank. [main]
void forget_interruptions();

// While one lives, the first signal is remembered. They may be nested; the outermost forgets what came before. With the
// last one's end the signals are handled as before the first. [main]
class interruption {
public:
  interruption();
  ~interruption();
  interruption(const interruption&) = delete;
  interruption& operator=(const interruption&) = delete;
  // A signal has come. [any]
  bool requested() const noexcept;
  // Readable once a signal has come; not to be read. Belongs to the program.
  int descriptor() const noexcept;
};

} // namespace regatta

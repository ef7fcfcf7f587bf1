// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

namespace regatta {

// [any] Returns the call stack of a thread of this process, innermost function first, each as "name+0x1f (library)", or
// "library+0x1f23" if the library exports no name. Interrupts the thread, and its system call, by a signal. Empty if
// the thread is gone or does not take the signal within 200 ms. One call at a time; not for the calling thread.
std::vector<std::string> stack_of(pid_t thread);

// [main] Loads the libraries that stack_of() needs, so that no interrupted thread has to. Call it once, before the
// first stack_of().
void prepare_stacks();

} // namespace regatta

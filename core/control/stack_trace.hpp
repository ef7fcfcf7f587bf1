// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

namespace regatta {

// [any] Returns the call stack of another thread of this process (`thread` is its gettid), innermost function first, at
// most some 45: each as "name+0x1f (library)", or "library+0x1f23" if the library exports no name. Interrupts the
// thread by a signal; system calls that Linux can restart continue. Empty if the thread is gone or does not take the
// signal within 200 ms. One call at a time. Requires prepare_stacks().
std::vector<std::string> stack_of(pid_t thread);

// [main] Installs the signal handler of stack_of(), and loads the libraries that it needs, so that no interrupted
// thread has to. Without it, the signal of stack_of() would end the process.
void prepare_stacks();

} // namespace regatta

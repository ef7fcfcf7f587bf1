// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

namespace regatta {

// [any] Returns the call stack of another thread of this process (`thread` is its gettid), innermost function first, at
// most 46 functions: each as "name+0x1f (library)", as "library+0x1f23" if the library exports no name, or as
// "0x7f1f23" outside of libraries. Interrupts the thread by a signal; system calls that Linux cannot restart fail with
// EINTR. Returns an empty list if the thread is gone or does not take the signal within 200 ms. One call at a time: the
// caller sees to that. Requires prepare_stacks().
std::vector<std::string> stack_of(pid_t thread);

// [main] Installs the signal handler of stack_of(), and loads the libraries that the handler needs, so that no
// interrupted thread has to. Without the handler, the signal would end the process. May be called again.
void prepare_stacks();

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

namespace regatta {

// The functions that a thread of this process is in, innermost first, each as "name+0x1f (library)", or
// "library+0x1f23" where the library does not export a name. The thread is interrupted by a signal, and its system call
// with it. Empty if the thread is gone or does not take the signal within 200 ms. One call at a time; not for the
// calling thread. [any]
std::vector<std::string> stack_of(pid_t thread);

// Loads what stack_of needs, so that no interrupted thread has to. Once, before the first stack_of. [main]
void prepare_stacks();

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// How the program writes to its terminal, or to the files and pipes in its place, which can fail at any time.
#pragma once

#include <string_view>

namespace regatta {

// Writes `text` to standard error. Text that cannot be written (a full disk, a pipe whose reader is gone, a closed
// descriptor) is lost without a consequence. Requires that SIGPIPE is ignored. [any]
void print_error(std::string_view text) noexcept;

// Writes `text` to standard output. If that fails, finish_output() says so. [main]
void print_output(std::string_view text) noexcept;

// Ends the output of a program that would exit with `code`: flushes standard output. Returns `code`, or exit_code::run
// instead of 0 where output was lost, which it says on standard error. [main]
int finish_output(int code);

} // namespace regatta

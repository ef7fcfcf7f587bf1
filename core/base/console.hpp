// SPDX-License-Identifier: Apache-2.0
//
// Writes to the program's terminal, or to the files and pipes that replace it, which can fail at any time.
#pragma once

#include <string_view>

namespace regatta {

// [any] Writes `text` to standard error. Text that cannot be written (full disk, pipe without reader, closed
// descriptor) is lost without further consequence. Requires that SIGPIPE is ignored.
void print_error(std::string_view text) noexcept;

// [main] Writes `text` to standard output. A failure is reported by finish_output().
void print_output(std::string_view text) noexcept;

// [main] Flushes standard output, at the end of a program that would exit with `code`. Returns `code`; if output was
// lost, reports it on standard error and returns exit_code::run in place of 0.
int finish_output(int code);

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// Writes documents to standard output, or to the file or pipe that replaces it, which can fail at any time.
#pragma once

#include <cstdio>
#include <string_view>

namespace regatta {

// [main] Reserves standard output for document_stream(). Afterwards descriptor 1 and stdout, which plugins write to,
// lead to standard error. Call it before any plugin is loaded; further calls do nothing. Changes nothing if standard
// output cannot be duplicated.
void claim_standard_output();

// [main] Returns the stream that print_output() writes to: stdout, or after claim_standard_output() the
// reserved standard output. Never null; the caller must not close it.
std::FILE* document_stream() noexcept;

// [main] Writes `text` as it is to document_stream() and flushes it. Requires that SIGPIPE is
// ignored. A failure is remembered; finish_output() reports it.
void print_output(std::string_view text) noexcept;

// [main] Flushes document_stream(); the last call before the program exits. Returns `code`, the exit code so far. If
// any output was lost, reports that on standard error and returns exit_code::run in place of 0.
int finish_output(int code);

} // namespace regatta

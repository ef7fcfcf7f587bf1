// SPDX-License-Identifier: Apache-2.0
//
// Reserves standard output for the document that a verb prints, so that a program that reads it does not find output of
// plugins in between.
#pragma once

#include <cstdio>

namespace regatta {

// [main] Reserves standard output for document_stream(). Afterwards descriptor 1 and stdout, which plugins write to,
// lead to standard error. Call it before any plugin is loaded; further calls do nothing. Changes nothing if standard
// output cannot be duplicated.
void claim_standard_output();

// [main] Returns the stream that print_output() (console.hpp) writes to: stdout, or after claim_standard_output() the
// reserved standard output. Never null; the caller must not close it.
std::FILE* document_stream() noexcept;

} // namespace regatta

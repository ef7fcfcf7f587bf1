// SPDX-License-Identifier: Apache-2.0
//
// Reserves standard output for the document that a verb prints, so that a program that reads it does not find output of
// plugins in between.
#pragma once

#include <cstdio>

namespace regatta {

// [main] Reserves standard output for document_stream(). Descriptor 1, to which the code of plugins writes, becomes
// standard error. Call it once, before any plugin is loaded. Changes nothing if standard output cannot be duplicated.
void claim_standard_output();

// [main] Returns the stream that print_output() (console.hpp) writes to: stdout until claim_standard_output() was called.
// Never null.
std::FILE* document_stream() noexcept;

} // namespace regatta

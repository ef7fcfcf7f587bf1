// SPDX-License-Identifier: Apache-2.0
//
// Standard output is the document that a verb prints, and nothing else: a program that reads it must not find what a
// plugin prints in between.
#pragma once

#include <cstdio>

namespace regatta {

// Keeps standard output for document_stream(); descriptor 1, which plugins' code writes to, is standard error from now
// on. Called once, before any plugin is loaded. Where standard output cannot be duplicated nothing changes. [main]
void claim_standard_output();

// The stream behind print_output() (console.hpp), which is how text is printed: stdout until it is claimed. Never null.
// [main]
std::FILE* document_stream() noexcept;

} // namespace regatta

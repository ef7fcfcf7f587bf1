// SPDX-License-Identifier: Apache-2.0
//
// Writes to standard error, which can fail at any time. cli/standard_output.hpp has standard output.
#pragma once

#include <string_view>

namespace regatta {

// [any] Writes `text` as it is to standard error, unbuffered; blocks while a pipe there is full. Text that cannot be
// written (full disk, pipe without reader, closed descriptor) is lost without further consequence. Requires that
// SIGPIPE is ignored.
void print_error(std::string_view text) noexcept;

} // namespace regatta

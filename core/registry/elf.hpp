// SPDX-License-Identifier: Apache-2.0
//
// Reads the headers of a shared object without running its code. dlopen() maps as much as the headers declare: with a
// truncated file the process would die of SIGBUS. (boost::dll::library_info is no substitute: it trusts the sizes that
// it reads, does not know architectures, and sees no symbols in a stripped file.)
#pragma once

#include <filesystem>
#include <string>

namespace regatta {

// [any] Returns why dlopen() must not open the file, and what to do, such as "empty: build or copy it again": the file
// is missing, not readable, not a regular file, truncated, no shared object, or for another architecture than this
// program. The text is one line and does not name the file. Returns "" if dlopen() may open it; dlopen() can still
// fail, for example for a missing library. Never blocks on a FIFO or a device.
std::string elf_problem(const std::filesystem::path& file);

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// Reads the headers of a shared object without running its code. dlopen() maps as much as the headers declare: with a
// truncated file the process would die of SIGBUS. (boost::dll::library_info is no substitute: it trusts the sizes that
// it reads, does not know architectures, and sees no symbols in a stripped file.)
#pragma once

#include <filesystem>
#include <string>

namespace regatta {

// Returns why dlopen() must not open the file, and what to do: it is missing, truncated, no shared object, or for
// another architecture. Empty if it may. The text does not name the file.
std::string elf_problem(const std::filesystem::path& file);

} // namespace regatta

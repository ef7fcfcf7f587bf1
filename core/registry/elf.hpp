// SPDX-License-Identifier: Apache-2.0
//
// A look at a shared object's headers without running anything of it. dlopen() maps what the headers promise: a file
// cut short dies by SIGBUS there. (boost::dll::library_info cannot do this: it trusts the sizes that it reads, knows no
// architectures, and sees no symbols in a stripped file.)
#pragma once

#include <filesystem>
#include <string>

namespace regatta {

// Why the file cannot be a shared object for this machine, and what to do; empty: it may be one.
std::string elf_problem(const std::filesystem::path& file);

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
//
// The instruction sets that this process and its plugins may use: the lowest of what the CPU has (regatta/simd.hpp),
// the environment variable REGATTA_ISA and the key train.isa.
#pragma once

#include <string>

#include <regatta/simd.hpp>

namespace regatta {

// The values of train.isa, for the schema: "auto", the names of rg::simd::isa_names, null.
extern const char* const isa_choices[];

// Makes train.isa (`choice`) hold for this process and the plugins that it loads from now on, by lowering REGATTA_ISA.
// Throws failure (usage) if it was called with another choice before: what is loaded keeps its instruction set. [main]
void cap_instruction_set(const std::string& choice);

// Returns the name of the lower one of `isa`, such as that of a host, and of what train.isa (`choice`) allows.
std::string capped(const std::string& isa, const std::string& choice);

// Returns the name of this process's instruction set. [any]
inline std::string instruction_set() {
  return std::string(rg::simd::isa_names[static_cast<std::size_t>(rg::simd::chosen)]);
}

} // namespace regatta

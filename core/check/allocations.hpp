// SPDX-License-Identifier: Apache-2.0
//
// Counts what a plugin allocates. The counter is a small library that is preloaded (LD_PRELOAD) only in the processes
// that run tests.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace regatta::conformance {

// Returns the counter's file, which lies beside the plugins of this program; empty if it is missing, or if a sanitizer
// replaces malloc.
std::string allocation_counter();

// Counts blocks that the code of these loaded files allocates, without those of libraries that it calls. Throws skipped
// if the counter is not loaded.
class allocation_watch {
public:
  explicit allocation_watch(const std::vector<std::filesystem::path>& files);
  std::uint64_t blocks() const { return all_(); }
  std::uint64_t large_blocks() const { return large_(); } // of more than 4 KiB

private:
  std::uint64_t (*all_)() = nullptr;
  std::uint64_t (*large_)() = nullptr;
};

} // namespace regatta::conformance

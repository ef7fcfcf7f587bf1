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

// Returns a name of the counter's file for LD_PRELOAD. The file lies beside the plugins of this program; the name has none
// of the spaces and colons that its path may have, and is valid while this process lives. Empty if the file is missing,
// or if a sanitizer replaces malloc.
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

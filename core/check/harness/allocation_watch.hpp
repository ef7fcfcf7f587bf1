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

// Returns a path of the counter's library for LD_PRELOAD, or "" if the library is missing or a sanitizer replaces
// malloc. The path is a link in /proc, valid until this process ends: unlike the library's own path (beside the plugins
// of this program) it contains no spaces or colons, which LD_PRELOAD takes as separators. [main]
std::string allocation_counter_library();

// Counts blocks that the code of these files allocates itself; blocks that libraries allocate for it do not count. The
// files must be loaded. Throws skipped if the counter is not loaded, and failed if a file's code is not found. Create
// it once in a process: the counter never stops and is never reset.
class allocation_watch {
public:
  explicit allocation_watch(const std::vector<std::filesystem::path>& files);
  // Returns the number of blocks since this object was created, those that were freed included. [any]
  std::uint64_t blocks() const { return all_(); }
  std::uint64_t large_blocks() const { return large_(); } // those of more than 4 KiB

private:
  std::uint64_t (*all_)() = nullptr;
  std::uint64_t (*large_)() = nullptr;
};

} // namespace regatta::conformance

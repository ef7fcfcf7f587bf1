// SPDX-License-Identifier: Apache-2.0
//
// Counts what a plugin allocates. The counter is a small library that comes before all others in the processes that
// tests run in (LD_PRELOAD), and is nowhere else.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace regatta::conformance {

// A name of the counter's file, which lies beside the plugins of this program, for LD_PRELOAD: one without the spaces and
// colons that a path may hold, valid while this process lives. Empty: it is not there, or a sanitizer has its own malloc.
std::string allocation_counter();

// Blocks that the code of these loaded files asks for: not the libraries that it calls. Throws skipped where the counter
// is not loaded.
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

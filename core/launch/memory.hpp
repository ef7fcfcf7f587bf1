// SPDX-License-Identifier: Apache-2.0
//
// The memory that this process and its ranks may still use, and kills by the kernel's OOM killer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace regatta {

// Returns the bytes that may still be allocated: the minimum of MemAvailable in /proc/meminfo and of the room below the
// limit of each control group of this process (inactive file pages count as free). 0: unknown. `root` is "/" except in
// tests.
std::uint64_t available_bytes(const std::filesystem::path& root = "/");

// Detects whether the kernel has killed a process for lack of memory since this object was constructed.
class oom_watch {
public:
  explicit oom_watch(std::filesystem::path root = "/");
  // Returns "the kernel ran out of memory (cgroup limit 400 MiB)"; empty if it killed no process in this control group.
  std::string verdict() const;

private:
  std::filesystem::path root_;
  std::uint64_t before_;
};

// Returns the value for a child's /proc/self/oom_score_adj that makes the kernel kill the child before this process.
std::string raised_oom_score();
// Writes the value for the calling process; ignores errors. Calls only async-signal-safe functions.
void take_oom_score(const char* score) noexcept;

} // namespace regatta

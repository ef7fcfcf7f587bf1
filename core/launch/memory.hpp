// SPDX-License-Identifier: Apache-2.0
//
// The memory that this process and its ranks may still use, and kills by the kernel's OOM killer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace regatta {

// [any] Returns the bytes that may still be allocated: the minimum of MemAvailable in /proc/meminfo and of the room
// below the limit of this process's control group and of each parent (inactive file pages count as free; a full group
// gives 1). 0: none of these can be read. `root` is "/" except in tests.
std::uint64_t available_bytes(const std::filesystem::path& root = "/");

// Detects whether the kernel's OOM killer has killed a process of this process's own control group (v2: or of a group
// below it) since construction. Kills of other processes are not seen.
class oom_watch {
public:
  explicit oom_watch(std::filesystem::path root = "/");
  // Returns "the kernel ran out of memory (cgroup limit 400 MiB)", without the parenthesis if there is no limit; empty
  // if there was no such kill.
  std::string verdict() const;

private:
  std::filesystem::path root_;
  std::uint64_t before_;
};

// Returns the value for a child's /proc/self/oom_score_adj that makes the kernel kill the child before this process:
// this process's value + 500, at most 1000. Call it before the fork, because it allocates.
std::string raised_oom_score();
// Sets /proc/self/oom_score_adj of the calling process to the text of raised_oom_score(); ignores errors. Calls only
// async-signal-safe functions.
void take_oom_score(const char* score) noexcept;

} // namespace regatta

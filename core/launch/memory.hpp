// SPDX-License-Identifier: Apache-2.0
//
// The memory that this process and its ranks may take, and whether the kernel killed one of them for it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace regatta {

// Bytes that may still be taken: of /proc/meminfo's MemAvailable, and of what every control group of this process leaves
// below its limit (file pages that are not in use count as free), the least. 0: unknown. `root` is "/" but in tests.
std::uint64_t available_bytes(const std::filesystem::path& root = "/");

// Tells whether the kernel killed a process for want of memory since this object was made.
class oom_watch {
public:
  explicit oom_watch(std::filesystem::path root = "/");
  // "the kernel ran out of memory (cgroup limit 400 MiB)", or empty: it killed none in the control group of this process.
  std::string verdict() const;

private:
  std::filesystem::path root_;
  std::uint64_t before_;
};

// What a child writes into its own /proc/self/oom_score_adj so that the kernel takes it before this process.
std::string raised_oom_score();
// Writes it. Calls nothing but async-signal-safe functions, and changes nothing where it cannot.
void take_oom_score(const char* score) noexcept;

} // namespace regatta

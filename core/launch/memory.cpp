// SPDX-License-Identifier: Apache-2.0
#include "launch/memory.hpp"

#include "launch/cgroup.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace regatta {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t no_bound = std::numeric_limits<std::uint64_t>::max();

// Returns the number in a file that holds one; nullopt if the file is missing or holds "max".
std::optional<std::uint64_t> number_in(const fs::path& file) {
  std::ifstream in(file);
  std::uint64_t n = 0;
  return in >> n ? std::optional(n) : std::nullopt;
}

// Returns the number after a word in a file whose lines are a word and a number; 0 if the word is not there.
std::uint64_t number_after(const fs::path& file, const std::string& word) {
  std::ifstream in(file);
  for (std::string key, rest; in >> key && std::getline(in, rest);)
    if (key == word) return std::strtoull(rest.c_str(), nullptr, 10);
  return 0;
}

// v1 writes a number near 2^63 if there is no limit.
std::optional<std::uint64_t> limit_of(const control_group& g) {
  const auto limit = number_in(g.folder / (g.v2 ? "memory.max" : "memory.limit_in_bytes"));
  return limit && *limit < std::uint64_t{1} << 60 ? limit : std::nullopt;
}

std::uint64_t least_limit(const fs::path& root) {
  std::uint64_t least = no_bound;
  for (const control_group& g : control_groups("memory", root)) least = std::min(least, limit_of(g).value_or(no_bound));
  return least;
}

// Counts kills in this process's own group (v2: and below it), not in its parents: the kernel counts a kill in the
// group of its victim, and ranks share the group of this process.
std::uint64_t oom_kills(const fs::path& root) {
  std::uint64_t sum = 0;
  bool seen[2] = {}; // the first group of each version is the process's own
  for (const control_group& g : control_groups("memory", root))
    if (!std::exchange(seen[g.v2], true))
      sum += number_after(g.folder / (g.v2 ? "memory.events" : "memory.oom_control"), "oom_kill");
  return sum;
}

} // namespace

std::uint64_t available_bytes(const fs::path& root) {
  std::uint64_t least = no_bound;
  if (const auto free = number_after(root / "proc/meminfo", "MemAvailable:")) least = free * 1024;
  for (const control_group& g : control_groups("memory", root)) {
    const auto limit = limit_of(g), used = number_in(g.folder / (g.v2 ? "memory.current" : "memory.usage_in_bytes"));
    if (!limit || !used) continue;
    const auto files = number_after(g.folder / "memory.stat", g.v2 ? "inactive_file" : "total_inactive_file");
    const auto taken = *used - std::min(*used, files);
    least = std::min(least, std::max<std::uint64_t>(*limit - std::min(*limit, taken), 1)); // not 0, which means unknown
  }
  return least == no_bound ? 0 : least;
}

oom_watch::oom_watch(fs::path root) : root_(std::move(root)), before_(oom_kills(root_)) {}

std::string oom_watch::verdict() const {
  if (oom_kills(root_) <= before_) return {};
  const std::uint64_t limit = least_limit(root_);
  return limit == no_bound ? "the kernel ran out of memory"
                           : fmt::format("the kernel ran out of memory (cgroup limit {} MiB)", limit >> 20);
}

std::string raised_oom_score() {
  int own = 0;
  std::ifstream("/proc/self/oom_score_adj") >> own;
  return std::to_string(std::min(own + 500, 1000));
}

void take_oom_score(const char* score) noexcept {
  const int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  (void)!::write(fd, score, std::strlen(score));
  ::close(fd);
}

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#include "cli/rank_logs.hpp"

#include "base/text.hpp"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <regatta/abi.h>
#include <unistd.h>

namespace regatta {
namespace {

constexpr std::uint64_t most_bytes = 16 << 20; // of one file

constexpr const char* level_names[] = {"error", "warning", "info", "debug"}; // index: RG_LOG_*

} // namespace

void rank_logs::begin(const std::string& run) {
  run_ = run;
  ranks_.clear();
}

std::optional<std::string> rank_logs::add(std::uint32_t rank, int level, const std::string& text) {
  written& w = ranks_[rank];
  if (w.bytes >= most_bytes) return {};
  const std::string name = (folder_ / fmt::format("{}-rank-{}.log", run_, rank)).string();
  const char* const label = level >= RG_LOG_ERROR && level <= RG_LOG_DEBUG ? level_names[level] : "info";
  std::string line = fmt::format("{:%H:%M:%S} {:<7} {}\n", fmt::localtime(std::time(nullptr)), label, cleaned(text));
  w.bytes += line.size();
  if (w.bytes >= most_bytes) line += "this file is full: later output of the rank is not kept\n";
  // Opens the file for every line: with thousands of ranks, open files would exceed the limit of descriptors.
  std::error_code ignored;
  if (w.file.empty()) std::filesystem::create_directories(folder_, ignored);
  const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666);
  bool good = fd >= 0 && ::write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  const int why = errno;
  if (fd >= 0) ::close(fd);
  if (good) {
    w.file = name;
    return {};
  }
  if (std::exchange(failed_, true)) return {};
  return fmt::format("{}: cannot write the ranks' log there: {}", name, std::strerror(why));
}

std::string rank_logs::file(std::uint32_t rank) const {
  const auto found = ranks_.find(rank);
  return found == ranks_.end() ? std::string{} : found->second.file;
}

std::optional<int> log_level_named(const std::string& name) {
  for (int level = RG_LOG_ERROR; level <= RG_LOG_DEBUG; ++level)
    if (name == level_names[level]) return level;
  return {};
}

} // namespace regatta

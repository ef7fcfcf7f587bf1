// SPDX-License-Identifier: Apache-2.0
#include "check/activity.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <unistd.h>

namespace regatta::conformance {
namespace {

struct activity {
  double used = 0;       // CPU seconds of all processes
  bool runnable = false; // a thread runs, or waits for a CPU
};

struct process_stat {
  char state = 0;
  pid_t group = 0;
  double used = 0;
};

// Reads /proc/PID/stat. The name in it may contain any character.
process_stat read_stat(const std::filesystem::path& file) {
  process_stat s;
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  const auto end_of_name = line.rfind(')');
  if (end_of_name == std::string::npos) return s;
  std::istringstream fields(line.substr(end_of_name + 1));
  std::string skip;
  double user = 0, system = 0;
  fields >> s.state >> skip >> s.group;
  for (int i = 0; i < 8; ++i) fields >> skip;
  fields >> user >> system;
  s.used = (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
  return s;
}

activity activity_of(pid_t group) {
  activity all;
  std::error_code ec;
  for (const auto& process : std::filesystem::directory_iterator("/proc", ec)) {
    const std::string name = process.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos || name == std::to_string(getpid())) continue;
    const process_stat s = read_stat(process.path() / "stat");
    if (s.group != group) continue;
    all.used += s.used;
    std::error_code gone;
    for (const auto& thread : std::filesystem::directory_iterator(process.path() / "task", gone))
      all.runnable = all.runnable || read_stat(thread.path() / "stat").state == 'R';
  }
  return all;
}

} // namespace

hang_watch::hang_watch(pid_t group, std::chrono::seconds limit)
    : group_(group), limit_(static_cast<double>(limit.count())), begin_(clock_type::now()), last_(begin_) {}

void hang_watch::progress() {
  begin_ = last_ = clock_type::now();
  asleep_ = 0;
  used_before_ = -1; // read when the next check finds no progress
}

bool hang_watch::hangs() {
  const auto now = clock_type::now();
  const double passed = std::chrono::duration<double>(now - last_).count();
  if (passed < 0.2) return false;
  last_ = now;
  const activity seen = activity_of(group_);
  if (used_before_ < 0) used_before_ = seen.used;
  if (!seen.runnable) asleep_ += passed;
  return asleep_ > limit_ || seen.used - used_before_ > limit_ ||
         std::chrono::duration<double>(now - begin_).count() > 12 * limit_;
}

} // namespace regatta::conformance

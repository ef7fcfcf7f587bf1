// SPDX-License-Identifier: Apache-2.0
#include "check/harness/hang_watch.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <unistd.h>

namespace regatta::conformance {
namespace {

struct activity {
  std::map<std::string, double> used; // CPU seconds by thread
  bool runnable = false;              // a thread runs, or waits for a CPU
};

struct process_stat {
  char state = 0;
  pid_t group = 0;
  double used = 0;
};

// Reads /proc/PID/stat. The process name in it may contain any character, so fields are counted from its last ')'.
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
    if (read_stat(process.path() / "stat").group != group) continue;
    std::error_code gone;
    for (const auto& thread : std::filesystem::directory_iterator(process.path() / "task", gone)) {
      const process_stat s = read_stat(thread.path() / "stat");
      all.used[thread.path().filename().string()] = s.used;
      all.runnable = all.runnable || s.state == 'R';
    }
  }
  return all;
}

} // namespace

hang_watch::hang_watch(pid_t group, std::chrono::seconds limit)
    : group_(group), limit_(static_cast<double>(limit.count())), begin_(clock_type::now()), last_(begin_) {}

void hang_watch::progress() {
  begin_ = last_ = clock_type::now();
  asleep_ = 0;
  used_before_.reset(); // the next hangs() reads it
}

bool hang_watch::hangs() {
  const auto now = clock_type::now();
  const double passed = std::chrono::duration<double>(now - last_).count();
  if (passed < 0.2) return false;
  last_ = now;
  const activity seen = activity_of(group_);
  if (!used_before_) used_before_ = seen.used;
  // A gap of more than 1 s means that this process did not get CPU time either; one sample cannot stand for all of it.
  if (!seen.runnable) asleep_ += std::min(passed, 1.0);
  double computed = 0;
  for (const auto& [thread, used] : seen.used) computed = std::max(computed, used - (*used_before_)[thread]);
  return asleep_ > limit_ || computed > limit_ || std::chrono::duration<double>(now - begin_).count() > 12 * limit_;
}

} // namespace regatta::conformance

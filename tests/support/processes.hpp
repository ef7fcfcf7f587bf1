// SPDX-License-Identifier: Apache-2.0
//
// Processes that a test starts, watches and kills.
#pragma once

#include "program.hpp"

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

namespace regatta::test {

// Until what does not happen is a failure; seconds would do, but not where many tests share two cores.
// Programs with a sanitizer take ten times as long to start and to load a plugin.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::chrono::seconds patience{240};
#else
constexpr std::chrono::seconds patience{30};
#endif

// Starts the command in the folder; its standard error goes to the file "err".
inline pid_t start(const temporary_folder& s, std::vector<std::string> command) {
  std::vector<char*> arguments;
  for (std::string& a : command) arguments.push_back(a.data());
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child != 0) return child;
  if (chdir(s.path.c_str()) != 0) _exit(99);
  const int null = open("/dev/null", O_RDWR), err = open("err", O_WRONLY | O_CREAT | O_TRUNC, 0600);
  signal(SIGINT, SIG_DFL); // a shell may have it ignored
  dup2(null, 1);
  dup2(err, 2);
  execv(arguments[0], arguments.data());
  _exit(99);
}

// The processes whose parent is `parent`: a run's ranks.
inline std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> found;
  std::ifstream list("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children");
  for (pid_t p = 0; list >> p;) found.push_back(p);
  return found;
}

inline bool alive(pid_t p) {
  std::string stat = read("/proc/" + std::to_string(p) + "/stat");
  const auto state = stat.rfind(") ");
  return state != std::string::npos && stat[state + 2] != 'Z' && stat[state + 2] != 'X';
}

// Polls f until it is true or the limit is over. Sleeps between polls, so that other processes get the CPU.
inline bool within(std::chrono::milliseconds limit, const std::function<bool()>& f) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!f()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

} // namespace regatta::test

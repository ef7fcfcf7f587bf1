// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <csignal>

namespace regatta {

// The signal handling that launching needs, for as long as this lives; then what was there before. Asio's signal_set
// alone would leave the default behind. On one thread.
class signal_scope {
public:
  signal_scope() {
    for (auto& s : saved_) ::sigaction(s.number, nullptr, &s.action);
    set(SIGPIPE, SIG_IGN); // a rank's end must not be ours
    set(SIGCHLD, SIG_DFL); // ignored, it would take away the exit statuses
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mask_);
  }
  ~signal_scope() {
    for (const auto& s : saved_) ::sigaction(s.number, &s.action, nullptr);
    ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  }
  signal_scope(const signal_scope&) = delete;
  signal_scope& operator=(const signal_scope&) = delete;

  // From here on SIGINT and SIGTERM wait for what was there before: while signal_set leaves, one would end the process.
  void hold() {
    sigset_t both;
    sigemptyset(&both);
    sigaddset(&both, SIGINT);
    sigaddset(&both, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &both, nullptr);
  }

  // A shell's background job, say, has SIGINT ignored, and means it.
  bool was_ignored(int number) const {
    for (const auto& s : saved_)
      if (s.number == number) return s.action.sa_handler == SIG_IGN;
    return false;
  }

private:
  struct saved {
    int number;
    struct sigaction action {};
  };

  static void set(int number, void (*handler)(int)) {
    struct sigaction action {};
    action.sa_handler = handler;
    ::sigaction(number, &action, nullptr);
  }

  std::array<saved, 4> saved_{saved{SIGINT}, saved{SIGTERM}, saved{SIGPIPE}, saved{SIGCHLD}};
  sigset_t mask_;
};

} // namespace regatta

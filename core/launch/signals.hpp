// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <csignal>

namespace regatta {

// For its lifetime, ignores SIGPIPE and gives SIGCHLD its default action, as launching needs; then restores both.
// Signal actions belong to the whole process, so only one such object may exist at a time.
class signal_scope {
public:
  signal_scope() {
    for (auto& s : saved_) ::sigaction(s.number, nullptr, &s.action);
    set(SIGPIPE, SIG_IGN); // a rank that is gone must not end this process
    set(SIGCHLD, SIG_DFL); // if it were ignored, exit statuses would be lost
  }
  ~signal_scope() {
    for (const auto& s : saved_) ::sigaction(s.number, &s.action, nullptr);
  }
  signal_scope(const signal_scope&) = delete;
  signal_scope& operator=(const signal_scope&) = delete;

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

  std::array<saved, 2> saved_{saved{SIGPIPE}, saved{SIGCHLD}};
};

} // namespace regatta

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <csignal>

namespace regatta {

// The handling of SIGPIPE and SIGCHLD that launching needs, for as long as this lives; then what was there before. On
// one thread.
class signal_scope {
public:
  signal_scope() {
    for (auto& s : saved_) ::sigaction(s.number, nullptr, &s.action);
    set(SIGPIPE, SIG_IGN); // a rank's end must not be ours
    set(SIGCHLD, SIG_DFL); // ignored, it would take away the exit statuses
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

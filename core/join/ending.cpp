// SPDX-License-Identifier: Apache-2.0
#include "join/ending.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>

#include <unistd.h>

#include "base/failure.hpp"
#include "launch/interruption.hpp"

namespace regatta {
namespace {

constexpr unsigned patience = 3; // seconds: longer than a campaign takes to end a run in order

std::atomic<pid_t> to_campaign{-1};
std::atomic<bool> begun_to_end{false};

// Calls only async-signal-safe functions.
void on_signal(int number) {
  const int error = errno;
  const bool again = begun_to_end.exchange(true);
  if (const pid_t campaign = to_campaign.load(); campaign > 0) {
    ::kill(campaign, number);
  } else {
    if (again) ::_exit(static_cast<int>(exit_code::interrupted)); // SIGALRM, too
    ::alarm(patience);
  }
  errno = error;
}

} // namespace

void await_end_at_interruptions(pid_t campaign) {
  forget_interruptions();
  to_campaign = campaign;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGALRM}) {
    struct sigaction before {};
    ::sigaction(s, nullptr, &before);
    if (before.sa_handler != SIG_IGN) ::sigaction(s, &action, nullptr);
  }
}

bool end_was_asked() noexcept {
  return begun_to_end.load();
}

} // namespace regatta

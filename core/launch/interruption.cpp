// SPDX-License-Identifier: Apache-2.0
#include "launch/interruption.hpp"

#include "base/failure.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace regatta {
namespace {

constexpr std::array<int, 3> signals{SIGINT, SIGTERM, SIGHUP};

std::atomic<int> scopes{0}, came{0}, echoes{0}, echoing{0}, event{-1};

using actions = std::array<struct sigaction, signals.size()>;
actions before_program, before_scopes;

// Reads the kernel's list of the main thread's children, as text: only the main thread starts processes here. Calls
// only async-signal-safe functions.
void kill_children() noexcept {
  std::array<char, 64> path{};
  char* at = path.data();
  const auto put = [&](const char* text) {
    while (*text) *at++ = *text++;
  };
  put("/proc/self/task/");
  at = std::to_chars(at, path.data() + path.size(), ::getpid()).ptr;
  put("/children");
  const int list = ::open(path.data(), O_RDONLY | O_CLOEXEC);
  if (list < 0) return; // ranks still die with this process (PR_SET_PDEATHSIG)
  pid_t child = 0;
  std::array<char, 512> text{};
  for (ssize_t got = 0; (got = ::read(list, text.data(), text.size())) > 0;)
    for (ssize_t i = 0; i < got; ++i) {
      const char c = text[static_cast<std::size_t>(i)];
      if (c >= '0' && c <= '9') {
        child = child * 10 + (c - '0');
      } else if (child > 0) {
        ::kill(-child, SIGKILL); // fails if the child leads no process group
        ::kill(child, SIGKILL);
        child = 0;
      }
    }
  ::close(list);
}

// Calls only async-signal-safe functions.
void on_signal(int, siginfo_t* info, void*) {
  const int error = errno;
  const bool echo = info->si_code <= 0 && echoing.load() > 0 && info->si_pid == echoing.load();
  if (scopes.load() == 0 || (echo ? echoes : came).fetch_add(1) > 0) {
    kill_children();
    ::_exit(static_cast<int>(exit_code::interrupted));
  }
  const std::uint64_t one = 1;
  (void)!::write(event.load(), &one, sizeof one);
  errno = error;
}

void install(actions& before) {
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO;
  for (const int s : signals) sigaddset(&action.sa_mask, s); // handle one signal at a time
  for (std::size_t i = 0; i < signals.size(); ++i) {
    ::sigaction(signals[i], nullptr, &before[i]);
    if (before[i].sa_handler != SIG_IGN) ::sigaction(signals[i], &action, nullptr);
  }
}

void restore(const actions& before) {
  for (std::size_t i = 0; i < signals.size(); ++i) ::sigaction(signals[i], &before[i], nullptr);
}

} // namespace

void end_at_interruptions() {
  install(before_program);
}

void expect_echoes_of(int sender) {
  echoing = sender;
}

void forget_interruptions() {
  restore(before_program);
}

interruption::interruption() {
  if (event.load() < 0) event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (scopes.load() > 0) {
    ++scopes;
    return;
  }
  std::uint64_t old = 0;
  (void)!::read(event.load(), &old, sizeof old);
  came = echoes = 0;
  ++scopes; // before the handler is installed, which reads it
  install(before_scopes);
}

interruption::~interruption() {
  if (scopes.load() == 1) restore(before_scopes);
  --scopes;
}

bool interruption::requested() const noexcept {
  return came.load() > 0 || echoes.load() > 0;
}

int interruption::descriptor() const noexcept {
  return event.load();
}

} // namespace regatta

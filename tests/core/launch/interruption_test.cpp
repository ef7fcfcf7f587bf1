// SPDX-License-Identifier: Apache-2.0
//
// Signals to a program that runs ranks: the first one ends the run, the second one the program.
#include "launch/interruption.hpp"

#include "launch_fixture.hpp"

#include <array>
#include <csignal>

#include <doctest/doctest.h>

using namespace regatta;
using namespace regatta::test;

TEST_CASE("a signal that came just before the run ends it; the caller's handling is back afterwards") {
  struct sigaction before {
  }, after{};
  REQUIRE(::sigaction(SIGTERM, nullptr, &before) == 0);
  {
    const interruption campaign;
    CHECK_FALSE(campaign.requested());
    ::raise(SIGTERM);
    CHECK(campaign.requested());
    const auto result = launch(plan_of(2, {step("loop")}), {});
    CHECK_FALSE(result.failure);
    CHECK(result.interrupted);
    CHECK(all_gone());
  }
  REQUIRE(::sigaction(SIGTERM, nullptr, &after) == 0);
  CHECK((after.sa_handler == before.sa_handler));
  CHECK_FALSE(interruption().requested()); // forgotten
}

TEST_CASE("a second signal ends the program at once, whatever it does, and its ranks with it") {
  for (const bool between : {false, true}) {
    CAPTURE(between);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      const interruption campaign;
      launch_hooks hooks;
      hooks.log = [&](std::uint32_t, int, const std::string&) { // the coordinator does not get to its signals
        ::raise(SIGTERM);
        ::raise(SIGTERM);
      };
      for (int i = 0; between && i < 2; ++i) ::raise(SIGTERM);
      launch(plan_of({{step("grandchild"), step("exchange", {{"bytes", 8}}), step("hang")},
                      {step("exchange", {{"bytes", 8}}), step("loop")}}),
             hooks);
      ::_exit(99);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 130);
    CHECK(all_gone());
  }
}

TEST_CASE("a signal and its echo, which another process passes on, are one signal") {
  for (const int own : {1, 2}) {
    CAPTURE(own);
    std::array<int, 2> ready{};
    REQUIRE(::pipe(ready.data()) == 0);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      const interruption campaign;
      expect_echoes_of(::getppid());
      for (int i = 0; i < own; ++i) ::raise(SIGTERM);
      sigset_t none, term; // the echo comes in sigsuspend()
      ::sigemptyset(&none);
      ::sigemptyset(&term);
      ::sigaddset(&term, SIGTERM);
      ::sigprocmask(SIG_BLOCK, &term, nullptr);
      (void)!::write(ready[1], "", 1);
      ::sigsuspend(&none);
      ::_exit(campaign.requested() ? 7 : 99);
    }
    char byte = 0;
    if (own == 1) REQUIRE(::read(ready[0], &byte, 1) == 1);
    if (own == 1) ::kill(child, SIGTERM);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == (own == 1 ? 7 : 130));
    for (const int fd : ready) ::close(fd);
  }
}

TEST_CASE("SIGINT, SIGTERM and SIGHUP end a run, and are handled as before afterwards") {
  struct sigaction before[5]{}, after{};
  const int numbers[] = {SIGINT, SIGTERM, SIGPIPE, SIGCHLD, SIGHUP};
  ::signal(SIGINT, [](int) { std::abort(); });
  ::signal(SIGHUP, SIG_DFL); // nohup has it ignored
  for (int i = 0; i < 5; ++i) ::sigaction(numbers[i], nullptr, &before[i]);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const auto o = run(plan_of(3, hang), [&](observed& seen) {
      if (seen.lines.back().second == "hanging" && seen.count("hanging") == 3) ::raise(number);
    });
    CHECK(o.result.interrupted);
    CHECK_FALSE(o.result.failure);
    for (int i = 0; i < 5; ++i) {
      ::sigaction(numbers[i], nullptr, &after);
      CHECK((after.sa_handler == before[i].sa_handler));
      CHECK(after.sa_flags == before[i].sa_flags);
    }
  }
  // Ignored by who started us: so it stays.
  ::signal(SIGINT, SIG_IGN);
  const auto o = run(plan_of(1, {step("log", {{"text", "here"}}), step("result", {{"value", 1}})}),
                     [](observed&) { ::raise(SIGINT); });
  CHECK_FALSE(o.result.interrupted);
  ::signal(SIGINT, SIG_DFL);
}

// SPDX-License-Identifier: Apache-2.0
//
// When a run stands still, and who is to blame, under a clock of the test's own; the status page it is read from.
#include <doctest/doctest.h>

#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "base/failure.hpp"
#include "control/status_page.hpp"
#include "launch/stall_detector.hpp"

using namespace regatta;
using namespace std::chrono_literals;

namespace {

using clock_type = stall_detector::clock;
using ranks = std::vector<std::uint32_t>;

rank_status status(std::uint64_t work, waiting waits = waiting::nothing, std::uint64_t step = 0, pace p = pace::step) {
  rank_status s;
  s.work = work;
  s.waits = waits;
  s.step = step;
  s.pace = p;
  return s;
}

stall_limits limits() {
  stall_limits l;
  l.watched = true;
  return l;
}

const clock_type::time_point start = clock_type::now();

} // namespace

TEST_CASE("a rank that works on alone is to blame, not those that wait for it") {
  auto l = limits();
  l.same = 2s;
  stall_detector s(l, 3);
  for (std::uint32_t r = 0; r < 3; ++r) s.note(r, status(1), start);
  s.note(0, status(1, waiting::peers), start + 1s);
  s.note(1, status(1), start + 1s);
  s.note(2, status(1, waiting::coordinator), start + 1s);
  CHECK(s.stuck(start + 2s).empty());
  rank_status turns = status(1, waiting::peers);
  turns.rounds = 7;
  s.note(0, turns, start + 3s);
  CHECK(s.stuck(start + 3s) == ranks{1});
  s.forgive(1s);
  CHECK(s.stuck(start + 3s).empty());
  s.note(1, status(2), start + 4s); // it goes on, so all may wait
  CHECK(s.stuck(start + 5s).empty());
}

TEST_CASE("an exchange whose rounds do not return is at fault though its rank waits") {
  auto l = limits();
  l.same = 2s;
  stall_detector s(l, 2);
  s.note(0, status(1, waiting::peers), start);
  s.note(1, status(1, waiting::peers), start);
  rank_status turns = status(1, waiting::peers);
  turns.rounds = 9;
  s.note(0, turns, start + 3s);
  CHECK(s.stuck(start + 3s) == ranks{1});
}

TEST_CASE("where all wait, those in an exchange come first, and of them the lowest step") {
  auto l = limits();
  l.same = 2s;
  stall_detector s(l, 4);
  rank_status turns = status(1, waiting::peers, 5);
  for (const auto at : {start, start + 3s}) {
    ++turns.rounds;
    turns.step = 5;
    s.note(0, turns, at);
    s.note(1, status(1, waiting::coordinator), at);
    turns.step = 4;
    s.note(2, turns, at);
    s.note(3, status(at == start ? 1 : 2), at);
  }
  CHECK(s.stuck(start + 4s).empty()); // rank 3 goes on
  s.leave(3);
  CHECK(s.stuck(start + 4s) == ranks{2, 0, 1});
}

TEST_CASE("auto: long before the first step, a multiple of the usual step after it") {
  stall_detector s(limits(), 1);
  s.note(0, status(1), start);
  CHECK(s.stuck(start + 119s).empty());
  CHECK(s.stuck(start + 121s) == ranks{0});
  auto now = start;
  std::uint64_t work = 1;
  for (std::uint64_t step = 0; step <= 5; ++step) s.note(0, status(++work, waiting::nothing, step), now += 3s);
  CHECK(s.stuck(now + 59s).empty()); // 20 steps of 3 s
  CHECK(s.stuck(now + 61s) == ranks{0});
  s.note(0, status(++work, waiting::nothing, 5, pace::rare), now); // an evaluation, say
  CHECK(s.stuck(now + 119s).empty());
  s.note(0, status(++work, waiting::nothing, 5, pace::unseen), now);
  CHECK(s.stuck(now + 599s).empty());
  CHECK(s.stuck(now + 601s) == ranks{0});

  stall_detector fast(limits(), 1);
  now = start;
  for (std::uint64_t step = 0; step <= 5; ++step) fast.note(0, status(++work, waiting::nothing, step), now += 10ms);
  CHECK(fast.stuck(now + 29s).empty());
  CHECK(fast.stuck(now + 31s) == ranks{0});

  stall_detector never(stall_limits{}, 1);
  never.note(0, status(1), start);
  CHECK(never.stuck(start + 24h).empty());
}

TEST_CASE("a status page shows the last operation of a process that was killed in the middle of them") {
  status_page page;
  CHECK(page.read().operation.empty());
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    status_page mine(::dup(page.descriptor()));
    for (std::uint64_t n = 1;; ++n) {
      mine.operation(n % 2 ? "the odd ones, which are of one length" : "even", n % 2 ? pace::rare : pace::unseen);
      mine.progress(n, 2 * n);
    }
  }
  while (page.read().step < 100000) {
    const std::string seen = page.read().operation;
    if (!seen.empty() && seen != "even" && seen != "the odd ones, which are of one length") CHECK(seen == "whole");
  }
  ::kill(child, SIGKILL);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  const rank_status last = page.read();
  CHECK(last.step >= 100000);
  CHECK((last.operation == "even" || last.operation == "the odd ones, which are of one length"));
  CHECK(last.work + 1 >= 2 * last.step); // its end may have come between the step's store and the work's
  page.operation(std::string(200, 'x').c_str(), pace::step);
  CHECK(page.read().operation == std::string(59, 'x'));
  page.operation(nullptr, pace::step);
  CHECK(page.read().operation.empty());
  CHECK_THROWS_AS(status_page(-1), failure);
}

// SPDX-License-Identifier: Apache-2.0
//
// Tasks that await tasks: in which order they run, and what they need of the stack.
#include <regatta/task.hpp>

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

namespace {

rg::task<int> one() {
  co_return 1;
}
rg::task<int> sum_of(int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += co_await one();
  co_return sum;
}
rg::task<> write_sum(int n, int& to) {
  to = co_await sum_of(n);
}

rg::task<> note(std::string& order, char what, rg::event* wait) {
  if (wait) {
    rg::event& e = *wait;
    co_await e;
  }
  order += what;
}
rg::task<> in_turn(std::string& order, rg::event& e) {
  co_await note(order, 'a', nullptr);
  co_await note(order, 'b', &e);
  co_await note(order, 'c', nullptr);
}

rg::task<> fail(rg::event* wait) {
  if (wait) {
    rg::event& e = *wait;
    co_await e;
  }
  throw std::runtime_error("no");
}
rg::task<> catch_it(bool& caught, rg::event* wait) {
  try {
    co_await fail(wait);
  } catch (const std::runtime_error&) {
    caught = true;
  }
}

} // namespace

// Tests are compiled without tail calls (-O1), as a plugin's debug build is.
TEST_CASE("a loop that awaits a million tasks which do not suspend needs no stack for each") {
  int sum = 0;
  rg::task_group group;
  group.spawn(write_sum(1'000'000, sum));
  CHECK(group.active() == 0);
  CHECK(sum == 1'000'000);
}

TEST_CASE("a task goes on after a task that it awaits, whether that suspends or not") {
  std::string order;
  rg::event e;
  rg::task_group group;
  group.spawn(in_turn(order, e));
  CHECK(order == "a");
  CHECK(group.active() == 1);
  e.set();
  CHECK(order == "abc");
  CHECK(group.active() == 0);
}

TEST_CASE("an exception of a task comes out where it is awaited, at once or later") {
  for (const bool later : {false, true}) {
    bool caught = false;
    rg::event e;
    rg::task_group group;
    group.spawn(catch_it(caught, later ? &e : nullptr));
    if (later) e.set();
    CHECK(caught);
    CHECK(group.active() == 0);
  }
}

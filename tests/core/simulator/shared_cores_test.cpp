// SPDX-License-Identifier: Apache-2.0
#include "simulator/shared_cores.hpp"

#include <doctest/doctest.h>

using namespace regatta;
using cores = shared_cores;

TEST_CASE("on one core, computing goes on when the work is over") {
  const cores_options one{{{1, 1}}, {0}, 1};
  cores c(one);
  c.compute(0, 100, 50);
  CHECK(c.end(0) == 150);
  c.work(0, cores::send, 120, 10, 130);
  CHECK(c.end(0) == 160);
  c.work(0, cores::send, 120, 10, 140); // after the first
  c.work(0, cores::receive, 150, 30, 160);
  CHECK(c.end(0) == 200);
  CHECK(c.lost(0) == 50);
  c.work(0, cores::send, 200, 40, 240); // not computing
  CHECK(c.end(0) == 200);
  c.compute(0, 210, 5); // while it works until 240
  CHECK(c.end(0) == 245);
  c.compute(0, 300, 5);
  CHECK(c.end(0) == 305);
}

TEST_CASE("of work that is over, computing loses what it was beside") {
  const cores_options one{{{1, 1}}, {0}, 1};
  cores c(one);
  c.compute(0, 100, 50);
  c.compute(0, 150, 50); // without a pause
  c.work(0, cores::receive, 160, 80, 162);
  CHECK(c.end(0) == 200 + 62); // from 100 on
  cores d(one);
  d.compute(0, 100, 50);
  d.compute(0, 155, 50);
  d.work(0, cores::receive, 160, 80, 162);
  CHECK(d.end(0) == 205 + 7);
}

TEST_CASE("on several cores, computing slows down while the work goes on") {
  const cores_options four{{{4, 4}}, {0}, 1};
  cores c(four);
  c.compute(0, 0, 300);
  c.work(0, cores::send, 0, 40, 40);
  CHECK(c.end(0) == 310);
  cores d(four);
  d.compute(0, 0, 30);
  d.work(0, cores::send, 0, 400, 400); // longer than computing: three of four cores compute
  CHECK(d.end(0) == 40);
  d.compute(0, 40, 600); // the rest of the work
  CHECK(d.end(0) == 640 + 90);
}

TEST_CASE("an idle core takes the work, and the loss of messages is a factor") {
  const cores_options idle{{{3, 2}}, {0}, 1};
  cores c(idle);
  c.compute(0, 0, 100);
  c.work(0, cores::send, 10, 50, 60);
  CHECK(c.end(0) == 100);
  const cores_options costly{{{1, 1}}, {0}, 1.5};
  cores d(costly);
  d.compute(0, 0, 100);
  d.work(0, cores::send, 10, 50, 60);
  CHECK(d.end(0) == 175);
  d.work(0, cores::operation, 60, 20, 80);
  CHECK(d.end(0) == 195);
}

TEST_CASE("ranks that share cores lose time to each other's work, those of other cores do not") {
  const cores_options two{{{2, 1}, {2, 1}}, {0, 0, 1}, 1};
  cores c(two);
  for (const std::uint32_t r : {0, 1, 2}) c.compute(r, 0, 100);
  c.work(0, cores::send, 10, 20, 30);
  CHECK(c.end(0) == 110);
  CHECK(c.end(1) == 110);
  CHECK(c.end(2) == 100);
  c.work(2, cores::send, 10, 20, 30); // one of its two cores is idle
  CHECK(c.end(2) == 100);
}

TEST_CASE("work waits for a core only where ranks are more than cores") {
  const cores_options two{{{2, 0}, {2, 1}}, {0, 0, 0, 1, 1}, 1};
  cores c(two);
  CHECK(c.begin(0, 100, 50) == 100);
  CHECK(c.begin(1, 100, 30) == 100);
  CHECK(c.begin(2, 110, 10) == 130);
  CHECK(c.begin(1, 120, 10) == 140);
  CHECK(c.begin(0, 200, 10) == 200);
  for (int i = 0; i < 3; ++i) CHECK(c.begin(3, 100, 50) == 100);
  const cores_options computing{{{1, 1}}, {0, 0}, 1};
  cores d(computing);
  for (const std::uint32_t r : {0, 1}) CHECK(d.begin(r, 100, 50) == 100);
}

TEST_CASE("a core that is idle for long is kept for work that is submitted later and begins earlier") {
  const cores_options two{{{2, 0}}, {0, 0, 0}, 1};
  cores c(two);
  CHECK(c.begin(0, 100, 50) == 100);
  CHECK(c.begin(1, 200, 10) == 200); // on the core that was busy until 150
  CHECK(c.begin(2, 50, 30) == 50);   // on the other one
  CHECK(c.begin(2, 0, 0) == 0);      // no work waits for nothing
}

TEST_CASE("computing that takes no core loses nothing to work") {
  const cores_options device{{{1, 0}}, {0}, 1};
  cores c(device);
  c.compute(0, 0, 100);
  c.work(0, cores::operation, 10, 50, 60);
  CHECK(c.end(0) == 100);
}

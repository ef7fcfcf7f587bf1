// SPDX-License-Identifier: Apache-2.0
#include "simulator/shared_cores.hpp"

#include <doctest/doctest.h>

using namespace regatta;
using cores = shared_cores;

TEST_CASE("on one core, work takes turns with computing, which goes on later") {
  const cores_options one{{{1, 1}}, {0}, 1};
  cores c(one);
  c.compute(0, 100, 50);
  CHECK(c.end(0) == 150);
  CHECK(c.work(0, cores::send, 120, 120, 10) == 140);
  CHECK(c.end(0) == 160);
  CHECK(c.work(0, cores::send, 120, 140, 10) == 160); // after the first
  CHECK(c.end(0) == 170);
  CHECK(c.work(0, cores::receive, 150, 130, 30) == 170); // 20 of it are over
  CHECK(c.end(0) == 200);
  CHECK(c.lost(0) == 50);
  CHECK(c.work(0, cores::send, 200, 200, 40) == 240); // not computing
  CHECK(c.end(0) == 200);
  c.compute(0, 210, 5); // while it works until 240
  CHECK(c.end(0) == 220);
  c.compute(0, 300, 5);
  CHECK(c.end(0) == 305);
}

TEST_CASE("computing that ends soon loses no more than it has left, and the work goes on alone") {
  const cores_options costly{{{1, 1}}, {0}, 1.5};
  cores c(costly);
  c.compute(0, 0, 20);
  CHECK(c.work(0, cores::send, 10, 10, 50) == 70);
  CHECK(c.end(0) == 30);
}

TEST_CASE("computing loses nothing to work that begins when it has ended, and a part if it ends meanwhile") {
  const cores_options one{{{1, 1}}, {0}, 1};
  cores c(one);
  c.compute(0, 0, 20);
  CHECK(c.work(0, cores::operation, 10, 10, 50) == 70); // 10 of it beside computing
  CHECK(c.end(0) == 30);
  CHECK(c.work(0, cores::operation, 10, 70, 50) == 120); // waits for the first
  CHECK(c.end(0) == 30);
  cores d(one);
  d.compute(0, 0, 50);
  CHECK(d.work(0, cores::receive, 0, 40, 30) == 80); // computing would go on for 10 when it begins
  CHECK(d.end(0) == 60);
}

TEST_CASE("of work that is over, computing loses what it was beside") {
  const cores_options one{{{1, 1}}, {0}, 1};
  cores c(one);
  c.compute(0, 100, 50);
  c.compute(0, 150, 50); // without a pause
  c.work(0, cores::receive, 160, 82, 80);
  CHECK(c.end(0) == 200 + 62); // from 100 on
  cores d(one);
  d.compute(0, 100, 50);
  d.compute(0, 155, 50);
  d.work(0, cores::receive, 160, 82, 80);
  CHECK(d.end(0) == 205 + 7);
}

TEST_CASE("on several cores, computing slows down while the work goes on") {
  const cores_options four{{{4, 4}}, {0}, 1};
  cores c(four);
  c.compute(0, 0, 300);
  c.work(0, cores::send, 0, 0, 40);
  CHECK(c.end(0) == 310);
  cores d(four);
  d.compute(0, 0, 30);
  d.work(0, cores::send, 0, 0, 400); // longer than computing: three of four cores compute
  CHECK(d.end(0) == 40);
  d.compute(0, 40, 600); // 390 of 430 ns, in which 400 of work are done, are left
  CHECK(d.end(0) == 640 + 91);
}

TEST_CASE("an idle core takes the work, and the loss of messages is a factor") {
  const cores_options idle{{{3, 2}}, {0}, 1};
  cores c(idle);
  c.compute(0, 0, 100);
  c.work(0, cores::send, 10, 10, 50);
  CHECK(c.end(0) == 100);
  const cores_options costly{{{1, 1}}, {0}, 1.5};
  cores d(costly);
  d.compute(0, 0, 100);
  d.work(0, cores::send, 10, 10, 50);
  CHECK(d.end(0) == 175);
  d.work(0, cores::operation, 60, 60, 20);
  CHECK(d.end(0) == 195);
}

TEST_CASE("ranks that share cores lose time to each other's work, those of other cores do not") {
  const cores_options two{{{2, 1}, {2, 1}}, {0, 0, 1}, 1};
  cores c(two);
  for (const std::uint32_t r : {0, 1, 2}) c.compute(r, 0, 100);
  c.work(0, cores::send, 10, 10, 20);
  CHECK(c.end(0) == 110);
  CHECK(c.end(1) == 110);
  CHECK(c.end(2) == 100);
  c.work(2, cores::send, 10, 10, 20); // one of its two cores is idle
  CHECK(c.end(2) == 100);
}

TEST_CASE("work waits for a core only where ranks are more than cores") {
  const auto ends = [](cores& c, std::uint32_t rank, std::uint64_t earliest, std::uint64_t ns) {
    return c.work(rank, cores::operation, earliest, earliest, ns);
  };
  const cores_options two{{{2, 0}, {2, 1}}, {0, 0, 0, 1, 1}, 1};
  cores c(two);
  CHECK(ends(c, 0, 100, 50) == 150);
  CHECK(ends(c, 1, 100, 30) == 130);
  CHECK(ends(c, 2, 110, 10) == 140);
  CHECK(ends(c, 1, 120, 10) == 150);
  CHECK(ends(c, 0, 200, 10) == 210);
  for (int i = 0; i < 3; ++i) CHECK(ends(c, 3, 100, 50) == 150);
  const cores_options computing{{{1, 1}}, {0, 0}, 1};
  cores d(computing);
  for (const std::uint32_t r : {0, 1}) CHECK(ends(d, r, 100, 50) == 150);
}

TEST_CASE("a core that is idle for long is kept for work that is submitted later and begins earlier") {
  const cores_options two{{{2, 0}}, {0, 0, 0}, 1};
  cores c(two);
  CHECK(c.work(0, cores::receive, 200, 100, 50) == 150);
  CHECK(c.work(1, cores::receive, 200, 200, 10) == 210); // on the core that was busy until 150
  CHECK(c.work(2, cores::receive, 200, 50, 30) == 80);   // on the other one
  CHECK(c.work(2, cores::receive, 200, 0, 0) == 0);      // no work waits for nothing
}

TEST_CASE("computing that takes no core loses nothing to work") {
  const cores_options device{{{1, 0}}, {0}, 1};
  cores c(device);
  c.compute(0, 0, 100);
  c.work(0, cores::operation, 10, 10, 50);
  CHECK(c.end(0) == 100);
}

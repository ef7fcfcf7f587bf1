// SPDX-License-Identifier: Apache-2.0
//
// Paths of synthetic steps whose answer is known.
#include "timeline/critical_path.hpp"

#include "synthetic_trace.hpp"

#include <doctest/doctest.h>

#include <numeric>

using namespace regatta;
using namespace regatta::test;

namespace {

// From the first link to the last: "0 1000-2000 name; ...".
std::string text_of(const critical_path& path) {
  std::string text;
  for (auto l = path.links.rbegin(); l != path.links.rend(); ++l)
    text +=
        std::to_string(l->rank) + " " + std::to_string(l->begin) + "-" + std::to_string(l->end) + " " + l->what + "\n";
  return text;
}

void check_adjacent(const critical_path& path) {
  for (std::size_t k = 1; k < path.links.size(); ++k) CHECK(path.links[k].end == path.links[k - 1].begin);
}

} // namespace

TEST_CASE("one worker that waits for nobody: its layers and phases, with their gaps") {
  synthetic_rank r(0);
  r.step(7, 1000, 2000);
  r.compute("input", "phase", 1000, 1100);
  r.compute("forward pass", "phase", 1100, 1500);
  r.layer("conv1", "forward", 1110, 1500);
  r.compute("backward pass", "phase", 1500, 1950);
  r.layer("conv1", "backward", 1500, 1950);
  const auto path = critical_path_of({r}, 7);
  REQUIRE(path);
  CHECK(path->step == 7);
  CHECK(path->rank == 0);
  CHECK(path->length() == 1000);
  CHECK(text_of(*path) == "0 1000-1100 input\n"
                          "0 1100-1110 forward pass\n"
                          "0 1110-1500 conv1 forward\n"
                          "0 1500-1950 conv1 backward\n"
                          "0 1950-2000 between the phases of the step\n");
  CHECK_FALSE(critical_path_of({r}, 8));
  CHECK(steps_of({r}) == std::vector<std::uint64_t>{7});
}

// Rank 1 computes longer. Rank 0 waits for its bucket 1, adds it and updates.
TEST_CASE("a wait leads over the message to the sender, and from its bucket to the layer") {
  synthetic_rank fast(0), slow(1, "worker 1");
  fast.step(3, 1000, 2000);
  fast.compute("backward pass", "phase", 1000, 1400);
  fast.layer("fc", "backward", 1000, 1400);
  fast.compute("exchange", "wait", 1400, 2000);
  fast.bucket(0, 1200);
  fast.bucket(1, 1405);
  // Bucket 0 arrives early and causes nothing.
  fast.message(event_kind::receive, 1, 0, 1210, 1700, 0, 0);
  fast.message(event_kind::receive, 1, 0, 1406, 1900, 1, 1);
  fast.operation("axpy", 1910, 1950);
  fast.operation("apply", 1950, 2000);
  slow.step(3, 1020, 1980);
  slow.compute("backward pass", "phase", 1020, 1800);
  slow.layer("conv", "backward", 1100, 1600);
  slow.layer("fc", "backward", 1600, 1800);
  slow.compute("exchange", "wait", 1800, 1980);
  slow.bucket(0, 1600);
  slow.bucket(1, 1803);
  slow.message(event_kind::send, 0, 0, 1610, 1690, 0, 0);
  slow.message(event_kind::send, 0, 0, 1810, 1890, 1, 1);
  const auto path = critical_path_of({fast, slow}, 3);
  REQUIRE(path);
  check_adjacent(*path);
  CHECK(text_of(*path) == "1 1020-1100 backward pass\n"
                          "1 1100-1600 conv backward\n"
                          "1 1600-1800 fc backward\n"
                          "1 1800-1803 exchange\n"
                          "1 1803-1810 strategy\n"
                          "0 1810-1900 waiting for bucket 1 of rank 1\n"
                          "0 1900-1910 strategy\n"
                          "0 1910-1950 axpy\n"
                          "0 1950-2000 apply\n");
  const auto shares = shares_of(*path);
  CHECK(shares.front().what == "conv backward");
  CHECK(shares.front().ns == 500);
  const auto sum = std::accumulate(shares.begin(), shares.end(), std::uint64_t{0},
                                   [](std::uint64_t s, const path_share& p) { return s + p.ns; });
  CHECK(sum == path->length());
  CHECK(ns_of(*path, path_part::computing) == 783);
  CHECK(ns_of(*path, path_part::messages) == 90);
  CHECK(ns_of(*path, path_part::strategy) == 107);
}

// The bucket of a message that is sent in the middle of the backward pass.
TEST_CASE("a bucket that becomes ready while the sender computes leads to the layer before it") {
  synthetic_rank a(0), b(1, "worker 1");
  a.step(0, 100, 500);
  a.compute("exchange", "wait", 200, 500);
  a.message(event_kind::receive, 1, 4, 150, 490, 2);
  b.step(0, 100, 450);
  b.layer("deep", "backward", 100, 300);
  b.layer("shallow", "backward", 300, 440);
  b.bucket(1, 200);
  b.bucket(2, 305);
  b.message(event_kind::send, 0, 4, 310, 480, 2);
  CHECK(text_of(*critical_path_of({a, b}, 0)) == "1 100-300 deep backward\n"
                                                 "1 300-305 shallow backward\n"
                                                 "1 305-310 strategy\n"
                                                 "0 310-490 waiting for bucket 2 of rank 1\n"
                                                 "0 490-500 strategy\n");
}

// A ring of two hops: the send of rank 1 waits for a message from rank 2.
TEST_CASE("messages are followed over several ranks, on their lane only") {
  synthetic_rank a(0), b(1, "worker 1"), c(2, "worker 2");
  a.step(1, 100, 1000);
  a.compute("exchange", "wait", 200, 1000);
  a.message(event_kind::receive, 1, 0, 210, 1000, 0, 3);
  b.step(1, 100, 900);
  b.compute("exchange", "wait", 150, 900);
  b.message(event_kind::receive, 2, 0, 160, 700, 0, 3);
  b.message(event_kind::receive, 2, 0, 160, 720, 1, 4); // of another lane
  b.operation("axpy", 700, 730);
  b.message(event_kind::send, 0, 0, 740, 800, 0, 3);
  c.step(1, 100, 900);
  c.layer("fc", "backward", 100, 600);
  c.bucket(0, 600);
  c.message(event_kind::send, 1, 0, 620, 690, 0, 3);
  CHECK(text_of(*critical_path_of({a, b, c}, 1)) == "2 100-600 fc backward\n"
                                                    "2 600-620 strategy\n"
                                                    "1 620-700 waiting for bucket 0 of rank 2\n"
                                                    "1 700-730 axpy\n"
                                                    "1 730-740 strategy\n"
                                                    "0 740-1000 waiting for bucket 0 of rank 1\n");
}

// A function of the strategy's own, between two operations; another one still runs at the end of the step.
TEST_CASE("a function that a strategy waits for is a link of the path") {
  synthetic_rank r(0);
  r.step(2, 100, 1000);
  r.layer("fc", "backward", 100, 300);
  r.compute("exchange", "wait", 300, 1000);
  r.bucket(0, 310);
  r.operation("copy", 320, 350);
  r.function("gemm", 360, 800);
  r.operation("apply", 820, 990);
  r.function("gemm", 900, 1100);
  CHECK(text_of(*critical_path_of({r}, 2)) == "0 100-300 fc backward\n"
                                              "0 300-310 exchange\n"
                                              "0 310-320 strategy\n"
                                              "0 320-350 copy\n"
                                              "0 350-360 strategy\n"
                                              "0 360-800 gemm\n"
                                              "0 800-820 strategy\n"
                                              "0 820-990 apply\n"
                                              "0 990-1000 strategy\n");
}

TEST_CASE("over a server, which has no steps and knows no buckets") {
  synthetic_rank w(0), s(1, "server 0");
  w.step(5, 1000, 2000);
  w.compute("backward pass", "phase", 1000, 1500);
  w.compute("exchange", "wait", 1500, 2000);
  w.bucket(0, 1510);
  w.message(event_kind::send, 1, 9, 1520, 1600, 0);
  w.message(event_kind::receive, 1, 9, 1530, 1990, 0);
  s.message(event_kind::receive, 0, 9, 900, 1610);
  s.operation("apply as server", 1620, 1800);
  s.message(event_kind::send, 0, 9, 1810, 1900);
  CHECK(text_of(*critical_path_of({w, s}, 5)) == "0 1000-1500 backward pass\n"
                                                 "0 1500-1510 exchange\n"
                                                 "0 1510-1520 strategy\n"
                                                 "1 1520-1610 waiting for bucket 0 of rank 0\n"
                                                 "1 1610-1620 strategy\n"
                                                 "1 1620-1800 apply as server\n"
                                                 "1 1800-1810 strategy\n"
                                                 "0 1810-1990 waiting for bucket 0 of rank 1\n"
                                                 "0 1990-2000 strategy\n");
}

TEST_CASE("traces with holes end the path, and never loop") {
  synthetic_rank a(0), b(1, "worker 1");
  a.step(1, 100, 1000);
  a.compute("exchange", "wait", 200, 1000);
  a.message(event_kind::receive, 1, 8, 300, 900, 0); // its send was dropped
  CHECK(text_of(*critical_path_of({a}, 1)) == "0 100-200 between the phases of the step\n"
                                              "0 200-300 exchange\n"
                                              "0 300-900 waiting for bucket 0 of rank 1, whose send is not recorded\n"
                                              "0 900-1000 strategy\n");
  // Messages that take no time, in a circle: as in a simulation without latency.
  a.events.clear();
  a.step(1, 100, 1000);
  a.compute("exchange", "wait", 200, 1000);
  b.step(1, 100, 900);
  b.compute("exchange", "wait", 200, 900);
  for (std::uint64_t k = 0; k < 3; ++k) {
    a.message(event_kind::send, 1, k, 500, 500);
    b.message(event_kind::receive, 0, k, 500, 500);
    b.message(event_kind::send, 0, k, 500, 500);
    a.message(event_kind::receive, 1, k, 500, 500);
  }
  const auto path = critical_path_of({a, b}, 1);
  REQUIRE(path);
  check_adjacent(*path);
  CHECK(path->links.back().begin == 100);
}

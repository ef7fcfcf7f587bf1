// SPDX-License-Identifier: Apache-2.0
//
// Clocks of several machines, and reading a file that was written.
#include "base/failure.hpp"
#include "files/gzip.hpp"
#include "synthetic_trace.hpp"
#include "timeline/alignment.hpp"
#include "timeline/perfetto.hpp"
#include "timeline/rank_trace.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <tuple>

#include <nlohmann/json.hpp>

using namespace regatta;
using namespace regatta::test;

namespace {

// The members of an event that a file keeps; the order of a file differs.
auto key(const rank_trace& r, const trace_event& e) {
  return std::tuple(e.begin, e.end, r.text(e.name), r.text(e.category), r.text(e.number_name), e.number, e.sequence,
                    e.peer, e.lane, e.bucket, e.kind);
}

} // namespace

TEST_CASE("clocks of several machines are aligned by their courses, and refused without") {
  synthetic_rank a(0), b(1), c(2);
  b.clock = "two";
  for (synthetic_rank* r : {&a, &b, &c}) r->step(0, 1000, 1100);
  std::vector<rank_trace> ranks{a, b, c};
  CHECK_THROWS_WITH_AS(align_clocks(ranks, {}),
                       "ranks 0 and 1 run on different machines, and the offset of their clocks is unknown: a trace "
                       "needs the ranks of one machine",
                       failure);
  CHECK_THROWS_AS(align_clocks(ranks, {{"two", {{{1000, {200, 5}}}}}}), failure); // that of "one" is unknown
  align_clocks(ranks, {{"one", {{{1000, {-10, 5}}}}}, {"two", {{{1000, {200, 5}}}}}});
  CHECK(ranks[0].events[0].begin == 1010);
  CHECK(ranks[1].events[0].begin == 800);
  CHECK(ranks[1].events[0].end == 900);
  CHECK(ranks[2].events[0].begin == 1010);
  std::vector<rank_trace> alone{a, c}; // one clock needs no alignment
  align_clocks(alone, {});
  CHECK(alone[1].events[0].begin == 1000);
}

TEST_CASE("events of servers outside of the workers' steps are left out") {
  synthetic_rank w(0), s(1, "server 0");
  w.step(4, 1000, 2000);
  s.operation("before", 100, 900);
  s.operation("across", 900, 1001);
  s.operation("after", 2001, 2002);
  s.dropped = 10; // its memory was full after the steps
  w.dropped = 3;
  std::vector<rank_trace> ranks{w, s};
  keep_traced_steps(ranks);
  REQUIRE(ranks[1].events.size() == 1);
  CHECK(ranks[1].text(ranks[1].events[0].name) == "across");
  CHECK(ranks[1].dropped == 0);
  CHECK(ranks[0].dropped == 3);
  ranks[1].events.clear();
  ranks[1].dropped = 10; // it was full before
  keep_traced_steps(ranks);
  CHECK(ranks[1].dropped == 10);
}

TEST_CASE("a file is read as it was written") {
  synthetic_rank a(0), b(3, "server 1");
  a.step(4, 1000, 2000);
  a.compute("exchange", "wait", 1500, 2000);
  a.layer("conv", "forward", 1100, 1200);
  a.bucket(7, 1300);
  a.message(event_kind::send, 3, 5, 1510, 1600, 2, 1);
  b.message(event_kind::receive, 0, 5, 900, 1700, no_bucket, 1);
  b.add(event_kind::span, event_origin::transport, "send", "communication", 950, 960, "bytes", 12).track = 6;
  b.dropped = 17;
  const std::vector<rank_trace> read = read_perfetto_file(perfetto_file({a, b}));
  REQUIRE(read.size() == 2);
  CHECK(read[0].rank == 0);
  CHECK(read[1].rank == 3);
  CHECK(read[0].role == "worker 0");
  CHECK(read[1].role == "server 1");
  CHECK(read[1].dropped == 17);
  const auto events_of = [](const rank_trace& r) {
    std::vector<decltype(key(r, r.events[0]))> all;
    for (const trace_event& e : r.events) all.push_back(key(r, e));
    std::sort(all.begin(), all.end());
    return all;
  };
  a.events[4].name = a.index_of("send bucket 2 to rank 3"); // files have names for people
  b.events[0].name = b.index_of("receive from rank 0");
  CHECK(events_of(read[0]) == events_of(a));
  CHECK(events_of(read[1]) == events_of(b));
  CHECK(read[1].events.back().track == 6);
}

TEST_CASE("other files are refused") {
  const std::string good = perfetto_file({synthetic_rank(0)});
  CHECK_NOTHROW(read_perfetto_file(good));
  CHECK_THROWS_AS(read_perfetto_file(""), failure);
  CHECK_THROWS_AS(read_perfetto_file("{}"), failure);
  CHECK_THROWS_AS(read_perfetto_file(std::string_view(good).substr(0, good.size() / 2)), failure);
  gzip_writer empty, other, endless;
  CHECK_THROWS_AS(read_perfetto_file(empty.finish()), failure);
  other.add("\x0a\x7f, but not so many bytes");
  CHECK_THROWS_AS(read_perfetto_file(other.finish()), failure);
  const std::string zeros(1 << 20, '\0');
  endless.add(zeros);
  CHECK_THROWS_WITH_AS(gunzip(endless.finish(), 1000), "it holds more than 1000 bytes", failure);
}

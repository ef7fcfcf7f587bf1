// SPDX-License-Identifier: Apache-2.0
//
// The recorder of a rank, its way to the coordinator, and reading a file that was written.
#include "base/failure.hpp"
#include "files/gzip.hpp"
#include "synthetic_trace.hpp"
#include "timeline/alignment.hpp"
#include "timeline/perfetto.hpp"
#include "timeline/rank_trace.hpp"
#include "trace/recorder.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <thread>
#include <tuple>

#include <nlohmann/json.hpp>
#include <regatta/plugin.hpp>
#include <regatta/trace.hpp>

using namespace regatta;
using namespace regatta::test;

namespace {

// A host of a plugin that has a recorder's extension.
struct host {
  const rg_trace* table;
  rg_host c = rg::make_versioned<rg_host>();
  explicit host(const rg_trace* t) : table(t) {
    c.context = this;
    c.extension = [](void* self, const char* id) -> const void* {
      return std::string_view(id) == RG_EXT_TRACE ? static_cast<host*>(self)->table : nullptr;
    };
  }
};

// The members of an event that a file keeps; the order of a file differs.
auto key(const rank_trace& r, const trace_event& e) {
  return std::tuple(e.begin, e.end, r.text(e.name), r.text(e.category), r.text(e.number_name), e.number, e.sequence,
                    e.peer, e.lane, e.bucket, e.kind);
}

} // namespace

TEST_CASE("a recorder keeps events only while it is on, and counts those that find no memory") {
  trace_recorder r(3);
  host plugin(r.extension(event_origin::executor));
  const rg::tracer tracer(&plugin.c);
  const char* const name = tracer.text(std::string("conv") + "1");
  CHECK_FALSE(tracer.on());
  r.span(event_origin::compute, "before", "phase", 1, 2);
  r.record(true);
  CHECK(tracer.on());
  tracer.span({.name = name, .category = "forward", .track = 4, .number_name = "flops", .number = 5}, 10, 20);
  r.instant(event_origin::loop, "bucket ready", "hook", 30, "bucket", 2);
  r.record(false);
  r.span(event_origin::compute, "between", "phase", 31, 32);
  r.record(true);
  for (int k = 0; k < 3; ++k) r.span(event_origin::compute, "last", "phase", 40, 50);

  const rank_trace t = rank_trace_from(r.take(2, "worker 2"));
  CHECK(t.rank == 2);
  CHECK(t.role == "worker 2");
  CHECK(t.clock.size() == 36); // a UUID
  CHECK(t.dropped == 2);
  REQUIRE(t.events.size() == 3);
  CHECK(t.text(t.events[0].name) == "conv1");
  CHECK(t.events[0].origin == event_origin::executor);
  CHECK(t.events[0].track == 4);
  CHECK(t.events[0].number == 5);
  CHECK(t.events[1].kind == event_kind::instant);
  CHECK(t.text(t.events[2].name) == "last");
  CHECK_FALSE(tracer.on()); // take() ends recording
}

TEST_CASE("threads record at once, without a loss") {
  trace_recorder r(40'000);
  r.record(true);
  std::vector<std::thread> threads;
  for (std::uint64_t k = 0; k < 4; ++k)
    threads.emplace_back([&r, k] {
      for (std::uint64_t n = 0; n < 10'000; ++n) r.span(event_origin::functions, "f", "operation", n, n, "k", k);
    });
  for (std::thread& t : threads) t.join();
  const rank_trace t = rank_trace_from(r.take(0, ""));
  CHECK(t.events.size() == 40'000);
  std::array<std::uint64_t, 4> sums{};
  for (const trace_event& e : t.events) sums.at(e.number) += e.begin;
  for (const std::uint64_t s : sums) CHECK(s == 49'995'000);
}

TEST_CASE("the memory of all ranks is bounded") {
  CHECK(trace_recorder::capacity_for(2) > 100'000);
  for (const std::uint32_t ranks : {1U, 8U, 64U, 4096U})
    CHECK(trace_recorder::capacity_for(ranks) * ranks <= 1'100'000);
}

TEST_CASE("bytes that are no events are refused") {
  trace_recorder r(1);
  r.record(true);
  r.span(event_origin::compute, "a", "b", 1, 2);
  nlohmann::json good = r.take(0, "");
  nlohmann::json bad = good;
  bad["strings"] = {""};
  CHECK_THROWS_AS(rank_trace_from(bad), failure);
  bad = good;
  bad.erase("clock");
  CHECK_THROWS_AS(rank_trace_from(bad), failure);
  CHECK(rank_trace_from(good).events.size() == 1);
}

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

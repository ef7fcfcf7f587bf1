// SPDX-License-Identifier: Apache-2.0
//
// Files as a reader sees them that protoc generates.
#include "timeline/perfetto.hpp"

#include "decoded_trace.hpp"
#include "synthetic_trace.hpp"

#include <doctest/doctest.h>

#include <map>
#include <set>

using namespace regatta;
using namespace regatta::test;

namespace {

const decoded_trace::span& find(const decoded_trace& t, const std::string& name) {
  for (const auto& s : t.spans)
    if (s.name == name) return s;
  FAIL("no span " << name);
  return t.spans.front();
}

std::string track_of(const decoded_trace& t, const std::string& name) {
  return t.tracks.at(find(t, name).track).name;
}

} // namespace

TEST_CASE("one process a rank, one track a thread and lane, layers within their pass") {
  synthetic_rank a(0, "worker 0 + server 0"), b(1, "worker 1");
  a.step(4, 1000, 2000);
  a.compute("forward pass", "phase", 1100, 1300);
  a.layer("conv", "forward", 1100, 1200);
  a.add(event_kind::instant, event_origin::compute, "need conv", "hook", 1100, 1100);
  a.operation("apply", 1400, 1450);
  a.bucket(2, 1390);
  a.message(event_kind::send, 1, 0, 1500, 1600, 2, 1);
  b.step(4, 1000, 2000);
  b.dropped = 9;
  const decoded_trace t = decode_trace(perfetto_file({a, b}));
  REQUIRE(t.processes.size() == 2);
  CHECK(t.process_of(find(t, "conv")).name == "rank 0: worker 0 + server 0");
  CHECK(t.process_of(find(t, "conv")).pid == 1);
  CHECK(t.process_of(find(t, "conv")).labels.empty());
  for (const auto& [uuid, p] : t.processes)
    if (p.pid == 2) CHECK(p.labels == std::vector<std::string>{"9 events dropped"});
  CHECK(track_of(t, "conv") == "compute");
  CHECK(find(t, "step").depth == 0);
  CHECK(find(t, "step").numbers.at("step") == 4);
  CHECK(find(t, "forward pass").depth == 1);
  const auto& conv = find(t, "conv");
  CHECK(conv.depth == 2);
  CHECK(conv.category == "forward");
  CHECK(conv.begin == 1100);
  CHECK(conv.end == 1200);
  CHECK(find(t, "need conv").instant);
  CHECK(track_of(t, "apply") == "operations");
  CHECK(find(t, "bucket ready").numbers.at("bucket") == 2);
  CHECK(track_of(t, "send bucket 2 to rank 1") == "lane 1: to rank 1");
  CHECK(find(t, "send bucket 2 to rank 1").numbers.at("bytes") == 100);
}

TEST_CASE("spans that overlap without nesting are put on rows of their own") {
  synthetic_rank r(0);
  const std::vector<std::pair<std::uint64_t, std::uint64_t>> times = {
      {100, 200}, {150, 250}, {160, 180}, {200, 300}, {200, 200}, {240, 310}, {300, 300}, {300, 310}, {100, 400}};
  std::uint64_t k = 0;
  for (const auto& [begin, end] : times) r.message(event_kind::receive, 1, k++, begin, end);
  const decoded_trace t = decode_trace(perfetto_file({r}));
  // The stack of begins and ends gives each span its own end, so every row nests.
  std::map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> seen;
  std::set<std::uint64_t> rows;
  for (const auto& s : t.spans) {
    seen[s.numbers.at("sequence")] = {s.begin, s.end};
    rows.insert(s.track);
  }
  REQUIRE(seen.size() == times.size());
  for (std::size_t n = 0; n < times.size(); ++n) CHECK(seen[n] == times[n]);
  CHECK(rows.size() == 3); // 100-200 and 150-250 overlap, and 240-310 overlaps one of each row
  for (const std::uint64_t row : rows) CHECK(t.tracks.at(row).name == "lane 0: from rank 1");
}

TEST_CASE("an arrow leads from the begin of each send to the end of its receive, by ranks, lane and order") {
  synthetic_rank a(0), b(1);
  for (std::uint64_t k = 0; k < 3; ++k) a.message(event_kind::send, 1, k + 7, 100 + 10 * k, 105 + 10 * k, no_bucket, 1);
  b.message(event_kind::receive, 0, 8, 50, 118, no_bucket, 1); // begins before its send
  b.message(event_kind::receive, 0, 7, 40, 108, no_bucket, 1);
  b.message(event_kind::receive, 0, 9, 60, 130, no_bucket, 0); // another lane
  b.message(event_kind::send, 0, 7, 140, 150, no_bucket, 1);   // the other direction
  const decoded_trace t = decode_trace(perfetto_file({a, b}));
  std::map<std::uint64_t, std::uint64_t> sent, received; // sequence by flow
  for (const auto& s : t.spans) {
    for (const std::uint64_t f : s.begins) CHECK(sent.emplace(f, s.numbers.at("sequence")).second);
    for (const std::uint64_t f : s.ends) CHECK(received.emplace(f, s.numbers.at("sequence")).second);
  }
  CHECK(sent == received);
  CHECK(sent.size() == 2);
}

TEST_CASE("counters: bytes in flight from the sends, busy cores from the CPU time") {
  synthetic_rank r(0);
  r.message(event_kind::send, 1, 0, 100, 200);
  r.message(event_kind::send, 1, 1, 150, 300);
  r.message(event_kind::send, 0, 0, 150, 300); // to itself: not in flight
  for (const auto& [time, cpu] : {std::pair{1000, 5000}, {1100, 5200}, {1300, 5200}})
    r.add(event_kind::counter, event_origin::compute, "CPU time", "counter", time, time, "ns", cpu);
  const decoded_trace t = decode_trace(perfetto_file({r}));
  std::map<std::string, std::vector<std::pair<std::uint64_t, double>>> values;
  for (const auto& s : t.samples) values[t.tracks.at(s.track).name].emplace_back(s.time, s.value);
  CHECK(values["bytes in flight"] ==
        std::vector<std::pair<std::uint64_t, double>>{{100, 100}, {150, 200}, {200, 100}, {300, 0}});
  CHECK(values["cores busy"] == std::vector<std::pair<std::uint64_t, double>>{{1000, 2}, {1100, 0}, {1300, 0}});
}

TEST_CASE("the largest trace is below 100 MB") {
  // Eight ranks with full memories would hold a million events; this is a 50th of it, of messages with times and sizes
  // that compress badly.
  synthetic_rank r(0);
  std::uint64_t state = 1, time = 1'000'000'000'000;
  for (std::uint64_t k = 0; k < 20'000; ++k) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    time += state >> 48;
    r.message(event_kind::send, 1, k, time, time + (state >> 40) % 100'000, k % 32, k % 4).number = state >> 36;
  }
  CHECK(perfetto_file({r}).size() * 50 < 100'000'000);
}

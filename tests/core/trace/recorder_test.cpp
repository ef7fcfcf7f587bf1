// SPDX-License-Identifier: Apache-2.0
//
// The recorder of a rank, and the way of its events to the coordinator.
#include "trace/recorder.hpp"

#include "base/failure.hpp"
#include "timeline/rank_trace.hpp"

#include <doctest/doctest.h>

#include <array>
#include <string_view>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>
#include <regatta/plugin.hpp>
#include <regatta/trace.hpp>

using namespace regatta;

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

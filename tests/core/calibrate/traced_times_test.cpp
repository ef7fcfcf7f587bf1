// SPDX-License-Identifier: Apache-2.0
#include "calibrate/traced_times.hpp"

#include "base/failure.hpp"

#include <doctest/doctest.h>

using namespace regatta;

namespace {

void add_event(rank_trace& t, event_kind kind, const std::string& name, std::uint64_t begin, std::uint64_t end) {
  trace_event e;
  e.kind = kind;
  e.begin = begin;
  e.end = end;
  e.name = static_cast<std::uint32_t>(t.strings.size());
  t.strings.push_back(name);
  t.events.push_back(e);
}

// A step of 100 ns from `at` on: tensor b is read first, and its gradient is ready last.
void add_step(rank_trace& t, std::uint64_t at, std::uint64_t slower) {
  add_event(t, event_kind::span, "step", at, at + 100 + slower);
  add_event(t, event_kind::span, "forward pass", at + 10, at + 40);
  add_event(t, event_kind::span, "backward pass", at + 40, at + 95 + slower);
  add_event(t, event_kind::instant, "need b", at + 12, at + 12);
  add_event(t, event_kind::instant, "need a", at + 20, at + 20);
  add_event(t, event_kind::instant, "ready a", at + 60, at + 60);
  add_event(t, event_kind::instant, "ready b", at + 90 + slower, at + 90 + slower);
}

} // namespace

TEST_CASE("times between the hooks of a trace") {
  rank_trace t;
  add_step(t, 1000, 0);
  add_step(t, 2000, 30);
  add_step(t, 3000, 4);
  const traced_times times = times_in_trace(t, {"a", "b"});
  CHECK(times.steps == 3);
  REQUIRE(times.tensors.size() == 2);
  CHECK(times.tensors[0].forward == 20);
  CHECK(times.tensors[1].forward == 10); // from the begin of the pass
  CHECK(times.tensors[0].backward == 20);
  CHECK(times.tensors[1].backward == 34); // the median
  CHECK(times.after == 5);
  CHECK_THROWS_AS(times_in_trace(t, {"a", "c"}), failure);
}

TEST_CASE("a model of sparse tables only computes from its first pass to its last") {
  rank_trace t;
  add_step(t, 1000, 0);
  add_step(t, 2000, 20);
  add_step(t, 3000, 20);
  const traced_times times = times_in_trace(t, {});
  CHECK(times.tensors.empty());
  CHECK(times.steps == 3);
  CHECK(times.after == 105); // the median of 85, 105 and 105
}
